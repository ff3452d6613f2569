// What a driver of CUDA 11.4 exports of the functions that tell its age.
int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}
