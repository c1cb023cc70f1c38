import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** Spends 30 % of its CPU time in a() and 70 % in b(), by its own account. */
public class Split {
  static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
  static volatile long sink;

  static void a(int n) {
    for (int i = 0; i < n; i++) sink += i;
  }

  static void b(int n) {
    for (int i = 0; i < n; i++) sink += i;
  }

  static void recursive(boolean isA, int depth, int n) {
    if (depth > 0) recursive(isA, depth - 1, n);
    else if (isA) a(n);
    else b(n);
  }

  public static void main(String[] args) {
    int depth = args[0].equals("recursive") ? 50 : 0;
    long inA = 0;
    long inB = 0;
    int seed = 1;
    for (;;) {
      // turns of changing lengths: equal ones could be in step with the samples
      seed = seed * 1_103_515_245 + 12_345;
      int n = 100_000 + (seed >>> 16) * 10;
      boolean isA = inA * 7 <= inB * 3;
      long before = THREADS.getCurrentThreadCpuTime();
      recursive(isA, depth, n);
      long spent = THREADS.getCurrentThreadCpuTime() - before;
      if (isA) inA += spent;
      else inB += spent;
    }
  }
}
