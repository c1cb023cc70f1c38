use Mojolicious::Lite -signatures;

app->config(hypnotoad => { listen => ['http://127.0.0.1:18800'], workers => 2, pid_file => '/tmp/hypnotoad.pid' });
app->log->level('fatal');

package Shop {
    sub price ($order) {
        my $sum = 0;
        $sum += sqrt for 1 .. $order;
        return $sum;
    }

    sub orders ($count) {
        return [map { sprintf '%.2f', price($_) } 1 .. $count];
    }
}

get '/orders' => sub ($c) { $c->render(template => 'orders', orders => Shop::orders(300)) };
app->start;
__DATA__
@@ orders.html.ep
% for my $order (@$orders) {
<p><%= $order %></p>
% }
