/** main calls a calls b calls c calls leaf, which burns CPU time. The test knows the lines. */
public class Chain {
  static volatile long sink;

  static void leaf(int n) {
    for (int i = 0; i < 1_000_000; i++) {
      sink += i ^ n;
    }
  }

  static void c(int n) {
    leaf(n);
  }

  static void b(int n) {
    c(n);
  }

  static void a(int n) {
    b(n);
  }

  public static void main(String[] args) {
    for (;;) {
      a(3);
    }
  }
}
