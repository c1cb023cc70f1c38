// Orders and their prices, by ASP.NET Core on Kestrel.
using System;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Text;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.Extensions.Logging;

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
    static string Orders()
    {
        var orders = Enumerable.Range(1, 2000).Select(number => new Order(number)).ToList();
        var text = new StringBuilder();
        foreach (var order in orders)
            text.Append(Price.Of(order).ToString("F2")).Append('\n');
        return text.ToString();
    }

    public static void Main()
    {
        var builder = WebApplication.CreateBuilder();
        builder.Logging.ClearProviders();
        builder.WebHost.UseUrls("http://127.0.0.1:18800");
        var app = builder.Build();
        app.MapGet("/orders", Orders);
        app.Run();
    }
}
}
