// Formats numbers by the rules of number_format.py: rounded by the exact decimal value, halves away
// from zero, which is what toExponential does.
const SHORT = 5;
function formatNumber(value, digits = 8) {
  if (typeof value === "object") return value.text; // an array, formatted by Python
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e"), power = Number(exponent);
  const figures = mantissa.replace(/^-|\./g, "").replace(/0+$/, "") || "0";
  const point = (text, after) => text.length > after ? `${text.slice(0, after)}.${text.slice(after)}` : text;
  const sign = value < 0 ? "-" : "";
  if (power <= -5 || power >= digits) return `${sign}${point(figures, 1)}e${power}`;
  if (power < 0) return `${sign}0.${"0".repeat(-power - 1)}${figures}`;
  return sign + point(figures.padEnd(power + 1, "0"), power + 1);
}
function isExact(text, value) { // except for the rounding of a few operations
  return Math.abs(Number(text) - value) <= 1e-14 * Math.abs(value);
}
function markRounding(value, digits = SHORT) { // puts "≈" in front of a rounded value
  if (typeof value === "object") return (digits > SHORT && value.whole) || value.text; // alone in a line
  const whole = formatNumber(value, digits + 1); // the mark is as long as one more digit
  return Number.isFinite(value) && !isExact(whole, value) ? `≈${formatNumber(value, digits)}` : whole;
}
