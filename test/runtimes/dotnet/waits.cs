// waits WARM SECONDS: sleeps 30 and 70 ms in two functions and reads lines of its input in a third, and says how long each took.
using System;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Runtime.CompilerServices;
using System.Threading;

public static class Waits
{
    static readonly Stopwatch clock = Stopwatch.StartNew();
    static readonly Stream input = Console.OpenStandardInput();
    static readonly byte[] line = new byte[2];

    static long Now() => (long)(clock.ElapsedTicks * (1e9 / Stopwatch.Frequency));

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Rest(int ms)
    {
        long began = Now();
        Thread.Sleep(ms);
        return Now() - began;
    }

    // What comes behind the call keeps these on the stack: a call at the end may be a jump.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long warm_up() => Rest(50) + 0 * Now();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long sleep_short() => Rest(30) + 0 * Now();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long sleep_long() => Rest(70) + 0 * Now();

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long read_line()
    {
        long began = Now();
        input.Read(line, 0, 2);
        return Now() - began;
    }

    static long In(string seconds) => (long)(double.Parse(seconds, CultureInfo.InvariantCulture) * 1e9);

    static void Main(string[] args)
    {
        for (long end = In(args[0]); Now() < end;)
            warm_up();
        long half = In(args[1]) / 2;
        long inShort = 0, inLong = 0, inRead = 0;
        for (long end = Now() + half; Now() < end;)
        {
            inShort += sleep_short();
            inLong += sleep_long();
        }
        for (long end = Now() + half; Now() < end;)
            inRead += read_line();
        Console.WriteLine($"sleep_short {inShort}\nsleep_long {inLong}\nread_line {inRead}");
    }
}
