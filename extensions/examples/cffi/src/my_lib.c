#include <TH/TH.h>

int my_lib_add_forward(THFloatTensor *input1, THFloatTensor *input2, THFloatTensor *output) {
  if (!THFloatTensor_isSameSizeAs(input1, input2)) THError("the two inputs differ in size");
  THArgCheck(THFloatTensor_isContiguous(input1) && THFloatTensor_isContiguous(input2), 1, "wants contiguous inputs");
  THFloatTensor_resizeAs(output, input1);
  const float *a = THFloatTensor_data(input1), *b = THFloatTensor_data(input2);
  float *sum = THFloatTensor_data(output);
  for (ptrdiff_t i = 0; i < THFloatTensor_nElement(input1); ++i) sum[i] = a[i] + b[i];
  return 1;
}

int my_lib_add_backward(THFloatTensor *grad_output, THFloatTensor *grad_input) {
  THFloatTensor_resizeAs(grad_input, grad_output);
  THFloatTensor_fill(grad_input, 1);
  return 1;
}

double my_lib_dot(const double *x, const double *y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}
