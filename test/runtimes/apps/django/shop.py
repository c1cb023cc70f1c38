from math import sqrt

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import JsonResponse
from django.urls import path

settings.configure(SECRET_KEY="none", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__)


def price(order):
    return sum(sqrt(n) for n in range(order))


def orders(request):
    return JsonResponse({"prices": [price(order) for order in range(300)]})


urlpatterns = [path("orders", orders)]
app = get_wsgi_application()
