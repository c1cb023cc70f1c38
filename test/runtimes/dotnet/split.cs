// split SHAPE: spends 30 % of its CPU time in a() and 70 % in b(), by its own clock, for ever.
using System;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

public static class Split
{
    static readonly Random random = new Random(1);
    static volatile int sink;

    struct Time
    {
        public long Seconds, Nanoseconds;
    }

    [DllImport("libc")]
    static extern int clock_gettime(int clock, out Time time);

    static double Now()
    {
        clock_gettime(3 /* of the thread */, out var time);
        return time.Seconds + time.Nanoseconds / 1e9;
    }

    // The same leaf below both.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Spend(double seconds)
    {
        for (double end = Now() + seconds; Now() < end;)
            for (int i = 0; i < 2000; i++)
                sink = sink * 31 + i;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void SpendDeep(double seconds, int depth = 30)
    {
        if (depth == 0)
            Spend(seconds);
        else
            SpendDeep(seconds, depth - 1);
        sink++;
    }

    // For 1 to 9 ms: what repeats every 10 ms is in step with 97 samples a second.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Work(bool isDeep)
    {
        double seconds = 0.001 + random.NextDouble() * 0.008;
        if (isDeep)
            SpendDeep(seconds);
        else
            Spend(seconds);
        sink++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void a(bool isDeep)
    {
        Work(isDeep);
        sink++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void b(bool isDeep)
    {
        Work(isDeep);
        sink++;
    }

    static void Both(bool isDeep)
    {
        double inA = 0, inB = 0;
        for (double before = Now();;)
        {
            bool isA = inA * 7 <= inB * 3;
            if (isA)
                a(isDeep);
            else
                b(isDeep);
            double after = Now();
            if (isA)
                inA += after - before;
            else
                inB += after - before;
            before = after;
        }
    }

    // State machines that one thread resumes by turns.
    sealed class Turns : SynchronizationContext
    {
        Action next = () => { };

        public override void Post(SendOrPostCallback callback, object state) => next = () => callback(state);

        public void Resume() => next();
    }

    static class Machines
    {
        public static async Task a()
        {
            for (;;)
            {
                await Task.Yield();
                Work(false);
            }
        }

        public static async Task b()
        {
            for (;;)
            {
                await Task.Yield();
                Work(false);
            }
        }
    }

    static Turns Begin(Func<Task> machine)
    {
        var turns = new Turns();
        SynchronizationContext.SetSynchronizationContext(turns);
        machine();
        return turns;
    }

    static void Async()
    {
        var (ofA, ofB) = (Begin(Machines.a), Begin(Machines.b));
        double inA = 0, inB = 0;
        for (;;)
        {
            bool isA = inA * 7 <= inB * 3;
            var turns = isA ? ofA : ofB;
            SynchronizationContext.SetSynchronizationContext(turns);
            double before = Now();
            turns.Resume();
            if (isA)
                inA += Now() - before;
            else
                inB += Now() - before;
        }
    }

    static void Main(string[] args)
    {
        if (args[0] == "async")
            Async();
        else
            Both(args[0] == "recursive");
    }
}
