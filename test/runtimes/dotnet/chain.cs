// Calls that are known: each method of a chain runs the next one, and the last one works until the program is ended.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

// A host that is no host of ours runs the chains before its own program: DOTNET_STARTUP_HOOKS names this assembly.
internal static class StartupHook
{
    public static void Initialize()
    {
        var chains = Environment.GetEnvironmentVariable("KNOWN_CHAINS");
        if (chains != null)
            Known.Program.Main(chains.Split(','));
    }
}

namespace Known
{

public static class Work
{
    static volatile int sink;
    public static readonly DateTime End = DateTime.UtcNow.AddSeconds(120);

    // The time of the process: nothing that runs long is called in between.
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Spin(int n)
    {
        int x = n;
        for (int i = 0; i < 2_000_000; i++)
            x = x * 31 + i;
        sink = x;
        if (IsToTell)
            Tell();
        return x;
    }

    // No loop and one call: it has no frame pointer once it is optimized.
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Thin(int n) => Spin(n) + 1;

    // Then Spin says once what the runtime itself knows of its callers.
    public static bool IsToTell;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Tell()
    {
        var trace = new System.Diagnostics.StackTrace(true);
        Console.WriteLine(trace);
        foreach (var frame in trace.GetFrames())
        {
            var method = frame.GetMethod();
            var row = method.MetadataToken & 0xffffff;
            Console.WriteLine($"{method.Module.Name} {row} {frame.GetILOffset()} {frame.GetNativeOffset()}");
        }
        Console.WriteLine("told");
        if (Environment.GetEnvironmentVariable("KNOWN_TRACE") == "stay")
            Thread.Sleep(Timeout.Infinite);
        Environment.Exit(0);
    }
}

public class Box<T>
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public int Open(int n)
    {
        return Work.Thin(n) + 1;
    }

    public class Lid<U>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public int Lift(int n) => new Box<U>().Open(n) + 1;
    }
}

public static class Program
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Plain(int n)
    {
        int sum = 0;
        sum += new Box<string>.Lid<int>().Lift(n);
        return sum + 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Lambda(int n)
    {
        int k = n;
        Func<int, int> f = m => Work.Spin(m + k) + 1;
        return f(n) + 1;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Local(int n)
    {
        return Inner(n) + 1;

        [MethodImpl(MethodImplOptions.NoInlining)]
        static int Inner(int m) => Work.Spin(m) + 1;
    }

    static int total;

    // Two methods of their own until the JIT has optimized them away.
    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static int Inner(int n)
    {
        int k = Work.Spin(n);
        total += k;
        return k;
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static int Middle(int n)
    {
        int k = Inner(n * 2);
        total += k;
        return k;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Inlined(int n)
    {
        int k = Inner(n);
        total += k;
        int m = Middle(n);
        total += m;
        return k + m;
    }

    static async Task<int> Outer(int n)
    {
        await Task.Yield();
        return await Nested(n) + 1;
    }

    static async Task<int> Nested(int n)
    {
        await Task.Delay(1);
        return Work.Spin(n) + 1;
    }

    static IEnumerable<int> Numbers(int n)
    {
        for (int i = 0; i < 3; i++)
            yield return Work.Spin(n + i);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Caught(int n)
    {
        try
        {
            throw new InvalidOperationException();
        }
        catch (InvalidOperationException)
        {
            return Work.Spin(n);
        }
        finally
        {
            Work.Spin(n + 1);
        }
    }

    static readonly Func<int, int> Dynamic = MakeDynamic();

    static Func<int, int> MakeDynamic()
    {
        var method = new DynamicMethod("Emitted", typeof(int), new[] { typeof(int) }, typeof(Program).Module);
        var il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, typeof(Work).GetMethod("Spin")!);
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Ret);
        return (Func<int, int>)method.CreateDelegate(typeof(Func<int, int>));
    }

    // The C library calls back: native frames between those of methods.
    [DllImport("libc")]
    static extern unsafe void qsort(int* items, IntPtr count, IntPtr size, delegate* unmanaged<int*, int*, int> compare);

    [UnmanagedCallersOnly]
    static unsafe int Compare(int* a, int* b)
    {
        Work.Spin(*a);
        return *a - *b;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static unsafe void Sorted(int n)
    {
        var items = stackalloc int[] { n + 3, n + 1, n + 2 };
        qsort(items, (IntPtr)3, (IntPtr)4, &Compare);
    }

    // Methods of the libraries, which are compiled ahead, call this one.
    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Precompiled(int n)
    {
        var list = new List<int> { 3, 1, 2 };
        list.Sort((a, b) => { Work.Spin(n); return a - b; });
        return list.Select(i => Work.Spin(i) + 1).Max();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Run(string which, int n)
    {
        switch (which)
        {
            case "plain": Plain(n); break;
            case "lambda": Lambda(n); break;
            case "local": Local(n); break;
            case "inlined": Inlined(n); break;
            case "async": Outer(n).Wait(); break;
            case "iterator": Numbers(n).Max(); break;
            case "caught": Caught(n); break;
            case "dynamic": Dynamic(n); break;
            case "native": Sorted(n); break;
            case "library": Precompiled(n); break;
            default: throw new ArgumentException(which);
        }
    }

    public static void Main(string[] args)
    {
        Work.IsToTell = Environment.GetEnvironmentVariable("KNOWN_TRACE") != null;
        Console.WriteLine("known chain");
        for (int n = 0; DateTime.UtcNow < Work.End; n++)
            Run(args.Length > 0 ? args[n % args.Length] : "plain", n);
    }
}
}
