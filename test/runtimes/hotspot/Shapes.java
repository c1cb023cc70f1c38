import java.util.HashMap;
import java.util.Map;
import java.util.function.IntUnaryOperator;

/** Calls of every kind, of short methods most of all: many samples fall into their first and last instructions. */
public class Shapes {
  interface Shape {
    int area(int x);
  }

  static class A implements Shape {
    public int area(int x) {
      return x * 3;
    }
  }

  static class B implements Shape {
    public int area(int x) {
      return x + 7;
    }
  }

  static class C implements Shape {
    public int area(int x) {
      return x ^ 11;
    }
  }

  static int sink;

  static int megamorphic(Shape[] shapes, int n) {
    int r = 0;
    for (int i = 0; i < n; i++) r += shapes[i % 3].area(i);
    return r;
  }

  static void empty() {}

  static int one(int a) {
    return a + 1;
  }

  static int eight(int a, int b, int c, int d, int e, int f, int g, int h) {
    return a + b + c + d + e + f + g + h;
  }

  static int calls(int n) {
    int r = 0;
    for (int i = 0; i < n; i++) {
      empty();
      r = eight(one(r), i, 1, 2, 3, 4, 5, 6);
    }
    return r;
  }

  static int arrays(int n) {
    byte[] x = new byte[4096];
    byte[] y = new byte[4096];
    for (int i = 0; i < n; i++) System.arraycopy(x, i & 7, y, 3, 4000);
    return y[100];
  }

  static int objects(int n) {
    Map<Integer, String> map = new HashMap<>();
    for (int i = 0; i < n; i++) map.put(i, "v" + i);
    return map.size();
  }

  static double arithmetic(int n) {
    double r = 0;
    for (int i = 0; i < n; i++) r += Math.sin(i) + Math.pow(i, 0.3);
    return r;
  }

  static void throwing(int i) {
    if (i % 3 == 0) throw new IllegalStateException();
  }

  static int exceptions(int n) {
    int r = 0;
    for (int i = 0; i < n; i++) {
      try {
        throwing(i);
      } catch (IllegalStateException e) {
        r++;
      }
    }
    return r;
  }

  static int lambdas(int n) {
    IntUnaryOperator f = x -> x + n;
    int r = 0;
    for (int i = 0; i < n; i++) r = f.applyAsInt(r);
    return r;
  }

  static int natives(int n) {
    int r = 0;
    for (int i = 0; i < n; i++) r += (int) System.nanoTime() + System.identityHashCode(new Object());
    return r;
  }

  static int recursive(Shape[] shapes, int depth) {
    return depth == 0 ? megamorphic(shapes, 50) : recursive(shapes, depth - 1) + 1;
  }

  public static void main(String[] args) {
    Shape[] shapes = {new A(), new B(), new C()};
    for (;;) {
      sink += megamorphic(shapes, 20_000) + calls(20_000) + arrays(200) + objects(2_000) + (int) arithmetic(2_000);
      sink += exceptions(1_000) + lambdas(2_000) + natives(2_000) + recursive(shapes, 100);
    }
  }
}
