from kiln_test_case import KilnTestCase, main


class OpsTest(KilnTestCase):
    def test_every_op_tells_its_signature_interfaces_and_implementations(self):
        ops = {op["op"]: op for op in self.ok("ops")["ops"]}
        norm = ops["LayerNormFwdOp"]
        self.assertEqual([t["name"] for t in norm["signature"]["inputs"]], ["x", "weight", "bias"])
        self.assertIn("bfloat16", norm["signature"]["inputs"][0]["dtypes"])
        self.assertEqual(norm["signature"]["inputs"][1]["dtype_of"], "x")
        self.assertTrue(norm["signature"]["inputs"][2]["optional"])
        self.assertEqual(norm["signature"]["params"][1]["default"], 1e-5)
        self.assertEqual(norm["interfaces"][0]["name"], "layer_norm_fwd")
        self.assertEqual(norm["interfaces"][0]["call_spec"], "LayerNormCall")
        by_device = {device for row in norm["implementations"] for device in row["devices"]}
        self.assertIn("cpu", by_device)
        for row in norm["implementations"]:
            self.assertEqual(row["interface"], "layer_norm_fwd")
            self.assertTrue(row["origin"])
        self.assertTrue(norm["reference"])

    def test_one_op(self):
        self.assertEqual(len(self.ok("ops", "LayerNormFwdOp")["ops"]), 1)
        self.assertIn("LayerNormFwdOp", self.kiln("ops").out)
        self.refused(2, "LayerNormFwdOp", "ops", "NoSuchOp")


if __name__ == "__main__":
    main()
