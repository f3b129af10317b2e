// The primitives, computed as by numpy; tests compare each of them with Python.
function erfSeries(x) { // for |x| < 2, where the terms soon decrease
  let term = x, sum = x;
  for (let n = 1; n < 100 && Math.abs(term) > 1e-18 * Math.abs(sum); n++) {
    term *= -x * x / n;
    sum += term / (2 * n + 1);
  }
  return 2 / Math.sqrt(Math.PI) * sum;
}
function erfcFraction(x) { // for x >= 2, Abramowitz and Stegun 7.1.14, from the inside out
  if (x > 27.3) return 0;
  let tail = 0;
  for (let k = 120; k >= 1; k--) tail = k / 2 / (x + tail);
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + tail);
}
function erf(x) {
  if (Number.isNaN(x)) return NaN;
  if (Math.abs(x) < 2) return erfSeries(x);
  return x > 0 ? 1 - erfcFraction(x) : erfcFraction(-x) - 1;
}
function erfc(x) {
  if (Number.isNaN(x)) return NaN;
  if (Math.abs(x) < 2) return 1 - erfSeries(x);
  return x > 0 ? erfcFraction(x) : 2 - erfcFraction(-x);
}
// As in numpy: nan propagates, and of two zeros the second is returned.
const greater = (a, b) => a > b || a !== a ? a : b, lesser = (a, b) => a < b || a !== a ? a : b;
const heaviside = a => a > 0 ? 1 : a < 0 ? 0 : 0.5 + 0 * a;
const PRIMITIVES = {
  add: (a, b) => a + b, sub: (a, b) => a - b, mul: (a, b) => a * b, div: (a, b) => a / b,
  neg: a => -a, copy: a => a, stop_gradient: a => a,
  // IEEE 754: 1 to any power is 1, which JavaScript does not follow for nan and infinity.
  // numpy takes a square root for 0.5, so that (-0)^0.5 is -0.
  pow: (a, b) => a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1
    : b === 0.5 ? Math.sqrt(a) : Math.pow(a, b),
  exp: Math.exp, expm1: Math.expm1, log: Math.log, log1p: Math.log1p, log2: Math.log2,
  log10: Math.log10, log_base: (a, b) => Math.log(a) / Math.log(b),
  logaddexp: (a, b) => a === b ? a + Math.LN2
    : greater(a, b) + Math.log1p(Math.exp(-Math.abs(a - b))),
  xlogy: (a, b) => a === 0 && b === 0 ? a : a * Math.log(b),
  sqrt: Math.sqrt, sin: Math.sin, cos: Math.cos, tan: Math.tan,
  sec: a => 1 / Math.cos(a), csc: a => 1 / Math.sin(a), cot: a => 1 / Math.tan(a),
  asin: Math.asin, acos: Math.acos, atan: Math.atan,
  asec: a => Math.acos(1 / a), acsc: a => Math.asin(1 / a), acot: a => Math.atan(1 / a),
  sinh: Math.sinh, cosh: Math.cosh, tanh: Math.tanh,
  sech: a => 1 / Math.cosh(a), csch: a => 1 / Math.sinh(a), coth: a => 1 / Math.tanh(a),
  asinh: Math.asinh, acosh: Math.acosh, atanh: Math.atanh,
  asech: a => Math.acosh(1 / a), acsch: a => Math.asinh(1 / a), acoth: a => Math.atanh(1 / a),
  sigmoid: a => a >= 0 ? 1 / (1 + Math.exp(-a)) : Math.exp(a) / (1 + Math.exp(a)),
  softplus: a => greater(a, 0) + Math.log1p(Math.exp(-Math.abs(a))),
  relu: a => greater(a, 0), leaky_relu: (a, b) => a < 0 ? b * a : a,
  erf, erfc, gelu: a => 0.5 * a * erfc(-0.7071067811865476 * a),
  abs: Math.abs, sign: a => a > 0 ? 1 : a < 0 ? -1 : a === 0 ? 0 : NaN, heaviside, step: heaviside,
  max: greater, min: lesser, clamp: (a, b, c) => lesser(greater(a, b), c),
  where: (a, b, c) => a !== 0 ? b : c, less: (a, b) => a < b ? 1 : 0,
  equal: (a, b) => a === b ? 1 : 0,
};
