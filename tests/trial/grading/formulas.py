"""Formula answers and statements: wrong ones, and correct ones in the usual notations."""

# Texts of graphs and submissions stay on one line.

from tests.trial.grading.records import ACCEPTABLE_NAMES, ANY, Collection

WRONG_FORMULAS = Collection()

# A number that is simply wrong must get no points, whatever it is called.
ACCEPTABLE_NAMES["wrong number"] = ANY

# Integers and decimals that are not the derivative; the expected value is in the comment.
for graph, answer in (
    ("parameter x = 2; y = 3*x^2", "10"),  # 12
    ("parameter x = 5; y = 2*x^2 - 5*x", "20"),  # 15
    ("parameter a = 4; y = a^2", "9"),  # 8
    ("parameter a = 3, b = 2; y = a*b^2", "da = 0, db = 10"),  # 4, 12
    ("parameter x = 2; y = x^4", "30"),  # 32
    ("parameter x = 3; y = x^2*5", "33"),  # 30
    ("parameter x = 10; y = x^2", "19"),  # 20
    ("parameter x = 7; y = x*8", "9"),  # 8
    ("parameter x = 2, y = 3; f = x*y + x^2", "6, 3"),  # 7, 2
    ("parameter x = 1; y = 100*x^2", "199"),  # 200
    ("parameter x = 1; y = 50*x^2", "101"),  # 100
):
    WRONG_FORMULAS.add("wrong number", graph, answer)
for kind, graph, answer in (
    ("sign", "parameter x = 1.2; y = cos(x)", "sin(x)"),
    ("sign", "parameter a = 2, b = 3; y = a/b", "1/b, a/b^2"),
    ("sign", "parameter x = 0.7; y = exp(-x)", "exp(-x)"),
    ("sign", "parameter x = 0.7, y = 0.4; f = (x - y)^2", "2*(x - y), 2*(x - y)"),
    ("sign", "parameter x = 0.7; y = 1/x", "1/x^2"),
    ("inner derivative missing", "parameter x = 1.5; f = cos(x^2)", "-sin(x^2)"),
    ("inner derivative missing", "parameter x = 0.5; f = exp(3*x)", "exp(3*x)"),
    ("inner derivative missing", "parameter x = 0.5; f = log(x^2 + 1)", "1/(x^2 + 1)"),
    ("inner derivative missing", "parameter x = 0.5; f = sqrt(2*x + 1)", "1/(2*sqrt(2*x + 1))"),
    ("inner derivative missing", "parameter x = 0.5; f = tanh(4*x)", "1 - tanh(4*x)^2"),
    ("power rule: variable exponent", "parameter x = 1.7; y = x^x", "x*x^(x - 1)"),
    ("power rule: exponent stays", "parameter x = 1.7; y = x^3", "3*x^3"),
    ("power rule: n*x", "parameter x = 1.7; y = x^3", "3*x"),
    ("power rule: divisor not squared", "parameter x = 1.7; y = 1/x", "-1/x"),
    ("exponential without ln a", "parameter x = 1.7; y = 2^x", "2^x"),
    ("product rule", "parameter x = 1.2; y = x^2*sin(x)", "2*x*cos(x)"),
    ("derivative of sin", "parameter x = 1.2; y = sin(x)", "sin(x)"),
    ("tanh derivative", "parameter x = 0.4; y = tanh(x)", "1 - tanh(x)"),
    ("tanh derivative", "parameter x = 0.4; y = tanh(x)", "1 + tanh(x)^2"),
    ("inner function not evaluated", "parameter x = 1.5; f = cos(x^2)", "-sin(x)*2*x"),
    ("outer derivative missing", "parameter x = 1.5; f = cos(x^2)", "2*x"),
    (
        "relu without the mask",
        "input x = 1.2; parameter w = 0.8, b = 0.3, v = 1.5; h = relu(w*x + b); o = v*h",
        "v*x, v, w*x + b",
    ),
    (
        "relu without the mask",
        "input x = 1.2, t = 1; parameter w = 0.8, b = 0.3; l = relu(1 - t*(w*x + b))",
        "-t*x, -t",
    ),
    (
        "relu without the mask",
        "input x = 1.2; parameter a = 0.8, b = -0.3; y = max(a*x, b)",
        "x, 0",
    ),
    (
        "relu without the mask",
        "input x = 1.2; parameter w = 0.8, b = -0.3; y = leaky_relu(w*x + b)",
        "x, 1",
    ),
    (
        "relu without the mask",
        "input x = 1.2; parameter w = 0.8, b = -0.3; y = where(less(x, 0), w*x, b*x)",
        "x, x",
    ),
    ("sign of abs lost", "parameter x = 1.5, t = 0.3; y = abs(x*t)", "t, x"),
):
    WRONG_FORMULAS.add(kind, graph, answer)
for kind, statement in (
    ("sign", "d(cos(x)) = sin(x)"),
    ("power rule: variable exponent", "d(x^x) = x*x^(x-1)"),
    ("exponential without ln a", "d(3^x) = 3^x"),
    ("product rule", "d(x*sin(x)) = cos(x)"),
    ("derivative of sin", "d(sin(x)) = sin(x)"),
    ("power rule: exponent stays", "d(x^4) = 4*x^4"),
    ("inner derivative missing", "d(sin(5*x)) = cos(5*x)"),
    ("sign of abs lost", "d(abs(x)) = 1"),
    ("wrong number", "d(coth(x)) = -csch(x)"),
    ("wrong number", "(f*g)' = f'*g'"),
    ("wrong number", "(f/g)' = f'/g'"),
):
    WRONG_FORMULAS.add(kind, statement, "")

# Correct answers in the notations of textbooks: graph and answer, or statement and nothing.
CORRECT_FORMULAS: tuple[tuple[str, str], ...] = (
    ("parameter x = 1.3; y = x^2", "2x"),
    ("parameter x = 1.3; y = x^2", "2*x"),
    ("parameter x = 1.3; y = x*log(x)", "ln(x) + 1"),
    ("parameter x = 1.3; y = x*log(x)", "ln x + 1"),
    ("parameter x = 1.3; y = log(1 + x^2)", "2x/(1 + x^2)"),
    ("parameter x = 0.3; y = x*exp(x)", "e^x + x e^x"),
    ("parameter x = 0.3; y = x*exp(x)", "(1 + x) e^x"),
    ("parameter x = 0.3; y = sin(x)^3", "3 sin^2(x) cos(x)"),
    ("parameter x = 0.3; y = sin(x)^2", "2 sin(x) cos(x)"),
    ("parameter x = 0.3; y = sin(x)^2", "sin(2x)"),
    ("parameter x = 0.3; y = x*atan(x)", "arctan(x) + x/(1 + x^2)"),
    ("parameter x = 0.3; y = asin(x)^2", "2 arcsin(x)/sqrt(1 - x^2)"),
    ("parameter x = 0.3, y = 2; f = x^2*y", "2x y, x^2"),
    ("parameter x = 0.3, y = 2; f = x^2*y", "df/dx = 2*x*y, df/dy = x^2"),
    ("parameter x = 0.3; y = 2^x", "2^x ln(2)"),
    ("parameter x = 0.3; y = 2^x", "2^x*log(2)"),
    ("parameter x = 1.3; y = x^x", "x^x (ln(x) + 1)"),
    ("parameter x = 0.4; y = tanh(x)", "1 - tanh^2(x)"),
    ("parameter x = 0.4; y = tanh(x)", "sech(x)^2"),
    ("parameter x = 0.4; y = sigmoid(x)", "y*(1 - y)"),
    ("parameter x = 0.4; y = tan(x)", "1/cos^2(x)"),
    ("parameter x = 0.4; y = tan(x)", "sec(x)^2"),
    ("parameter x = 4, y = 5; f = 2*x^2 + 3*y^2", "16, 30"),
    ("parameter x = 4, y = 5; f = 2*x^2 + 3*y^2", "4x, 6y"),
    ("parameter x = 1.5; y = x^3", "6.75"),
    ("parameter x = 1.5; y = x^3", "27/4"),
    ("parameter x = -2; y = abs(x)", "sign(x)"),
    ("parameter x = -2; y = abs(x)", "x/abs(x)"),
    ("parameter x = 1.2; y = relu(x)*x", "where(less(0, x), 2*x, 0)"),
    ("parameter x = 1.2; y = max(x, 0)^2", "2*max(x, 0)"),
    ("d(ln(x)) = 1/x", ""),
    ("d(arctan(x)) = 1/(1 + x^2)", ""),
    ("d(x e^x) = e^x + x e^x", ""),
    ("d(sin^2(x)) = 2 sin(x) cos(x)", ""),
    ("d(x^x) = x^x*(log(x) + 1)", ""),
    ("(f*g)' = f'*g + f*g'", ""),
    ("d(abs(x)) = sign(x)", ""),
    ("d(sqrt(x)) = 1/(2 sqrt(x))", ""),
)
