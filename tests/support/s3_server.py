"""s3_server.py FOLDER PORT PLAIN_PORT USER SECRET

OpenStack Swift with its S3 gateway, whole and in one process, in FOLDER: the gateway on PORT checks signatures, and has
a bucket "kiln"; PLAIN_PORT is the same store without any check, as /v1/AUTH_test/kiln/NAME.
"""

import array
import os
import sys

import eventlet

eventlet.patcher.monkey_patch()

from eventlet import listen, wsgi  # noqa: E402
from swift.account import server as account  # noqa: E402
from swift.common import ring, utils  # noqa: E402
from swift.common.middleware.s3api import s3api  # noqa: E402
from swift.common.swob import HTTPForbidden, Request  # noqa: E402
from swift.common.utils import NullLogger  # noqa: E402
from swift.container import server as container  # noqa: E402
from swift.obj import server as objects  # noqa: E402
from swift.proxy import server as proxy  # noqa: E402


def serve(socket, app):
    eventlet.spawn(wsgi.server, socket, app, log=NullLogger(), log_output=False)


def storage(folder):
    """The three kinds of storage servers, and rings that name one of each. Returns the proxy before them."""
    os.makedirs(os.path.join(folder, "disk"), exist_ok=True)
    os.chdir(folder)
    conf = {"devices": folder, "mount_check": "false", "swift_dir": folder, "hash_path_suffix": "kiln"}
    apps = {
        "account": account.AccountController(conf),
        "container": container.ContainerController(conf),
        "object": objects.ObjectController(conf),
    }
    for name, app in apps.items():
        socket = listen(("127.0.0.1", 0))
        device = {"id": 0, "region": 1, "zone": 0, "ip": "127.0.0.1", "port": socket.getsockname()[1], "device": "disk"}
        device.update(replication_ip=device["ip"], replication_port=device["port"], weight=1)
        ring.RingData([array.array("H", [0])], [device], 32).save(name + ".ring.gz")
        serve(socket, app)
    conf.update(account_autocreate="true", allow_account_management="true")
    return proxy.Application(conf)


def main():
    folder, port, plain_port, user, secret = sys.argv[1:]
    utils.HASH_PATH_SUFFIX = b"kiln"
    store = storage(folder)

    def plain(env, start):
        return store({**env, "swift_owner": True}, start)

    def signed(env, start):
        details = env.get("s3api.auth_details")
        if details is None:  # what the gateway asks for itself says so, and nothing that a client sends can
            allowed = "swift.source" in env
        else:
            allowed = details["access_key"] == user and details["check_signature"](secret)
        if not allowed:
            return HTTPForbidden()(env, start)
        path = env["PATH_INFO"].replace("/" + user, "/AUTH_test", 1)
        return plain({**env, "PATH_INFO": path, "REMOTE_USER": user}, start)

    gateway = s3api.S3ApiMiddleware(signed, {"auth_pipeline_check": "false"})

    made = Request.blank("/v1/AUTH_test/kiln", {"REQUEST_METHOD": "PUT"}).get_response(plain)
    if made.status_int // 100 != 2:
        sys.exit("no bucket: " + made.status)
    serve(listen(("127.0.0.1", int(plain_port))), plain)
    wsgi.server(listen(("127.0.0.1", int(port))), gateway, log=NullLogger(), log_output=False)


main()
