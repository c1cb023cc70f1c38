// Runs copies of the assembly reloaded.dll, each until a byte comes, and unloads it: the next one takes its place.
using System;
using System.IO;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;
using System.Text;
using System.Threading;

public static class Reload
{
    static volatile bool isOver;

    public static void Main()
    {
        var folder = Path.GetDirectoryName(Assembly.GetExecutingAssembly().Location);
        var original = Encoding.Latin1.GetString(File.ReadAllBytes(Path.Combine(folder, "reloaded.dll")));
        new Thread(WaitForBytes) { IsBackground = true }.Start();
        for (var i = 1; ; i++)
        {
            var name = $"Reload{i:00}";
            var copy = original.Replace("Reloaded", name).Replace("reloaded", name.ToLowerInvariant());
            RunCopy(name, Encoding.Latin1.GetBytes(copy));
            isOver = false;
            for (var k = 0; k < 5; k++)
            {
                GC.Collect();
                GC.WaitForPendingFinalizers();
            }
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void RunCopy(string name, byte[] bytes)
    {
        var context = new AssemblyLoadContext(name, isCollectible: true);
        var run = context.LoadFromStream(new MemoryStream(bytes)).GetType(name).GetMethod("Run");
        run.Invoke(null, new object[] { (Func<bool>)(() => isOver) });
        context.Unload();
    }

    static void WaitForBytes()
    {
        while (Console.In.Read() >= 0) isOver = true;
        Environment.Exit(0);
    }
}
