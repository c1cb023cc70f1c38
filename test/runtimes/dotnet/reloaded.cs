// Its copies, Reload01 and so on, have as long a name, and so all that .NET makes of them.
public static class Reloaded
{
    public static void Main() { }

    public static void Run(System.Func<bool> isOver)
    {
        long sum = 0;
        while (!isOver()) sum = Turn(sum);
        if (sum == 42) System.Console.WriteLine(sum);
    }

    [System.Runtime.CompilerServices.MethodImpl(System.Runtime.CompilerServices.MethodImplOptions.NoInlining)]
    static long Turn(long sum)
    {
        for (var i = 0; i < 20_000; i++) sum = sum * 31 + i;
        return sum;
    }
}
