/** Its copies have as long a name, and so all that the JVM makes of them. */
public class Reloaded implements Runnable {
    public void run() {
        long sum = 0;
        while (!Reload.isOver) sum = turn(sum);
        if (sum == 42) System.out.println(sum);
    }

    static long turn(long sum) {
        for (int i = 0; i < 5000; i++) sum = sum * 31 + i;
        return sum;
    }
}
