from math import sqrt

from flask import Flask, render_template_string

app = Flask(__name__)


def price(order):
    return sum(sqrt(n) for n in range(order))


@app.get("/orders")
def orders():
    prices = [price(order) for order in range(300)]
    return render_template_string("{% for p in prices %}<p>{{ p }}</p>{% endfor %}", prices=prices)
