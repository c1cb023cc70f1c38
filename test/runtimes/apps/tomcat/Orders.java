package shop;

import jakarta.servlet.annotation.WebServlet;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

@WebServlet("/orders")
public class Orders extends HttpServlet {
  static double price(int order) {
    double sum = 0;
    for (int n = 1; n <= order; n++) sum += Math.sqrt(n);
    return sum;
  }

  @Override
  protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
    for (int order = 1; order <= 2000; order++) response.getWriter().printf("%.2f%n", price(order));
  }
}
