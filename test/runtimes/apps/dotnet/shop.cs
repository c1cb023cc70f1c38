// Orders and their prices, by the HTTP server that .NET itself has.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Net;
using System.Runtime.CompilerServices;
using System.Text;
using System.Threading.Tasks;

namespace Shop
{

public record Order(int Number);

public static class Price
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static double Of(Order order)
    {
        double sum = 0;
        for (int n = 1; n <= order.Number; n++)
            sum += Math.Sqrt(n);
        return sum;
    }
}

public static class Server
{
    static async Task Answer(HttpListenerContext context)
    {
        var orders = await Load(2000);
        var text = string.Join('\n', orders.Select(order => Price.Of(order).ToString("F2")));
        await context.Response.OutputStream.WriteAsync(Encoding.UTF8.GetBytes(text));
        context.Response.Close();
    }

    static async Task<List<Order>> Load(int count)
    {
        await Task.Yield();
        return Enumerable.Range(1, count).Select(number => new Order(number)).ToList();
    }

    public static async Task Main()
    {
        var listener = new HttpListener { Prefixes = { "http://127.0.0.1:18800/" } };
        listener.Start();
        for (;;)
        {
            var context = await listener.GetContextAsync();
            _ = Task.Run(() => Answer(context));
        }
    }
}
}
