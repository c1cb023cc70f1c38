/** Small shops in web frameworks of several languages, each in a folder here: how to start them, and what of their own they run. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KnownFrameType } from '../../../common/profile/model/frame-types.ts';
import { BEAM_PROCESS_NAME } from '../../../common/profile/model/sample-attributes.ts';
import { findDotnets, runAssembly } from '../dotnets.ts';
import { type Erlang, packagedElixir, packagedErlang, runModule, runScript } from '../erlangs.ts';
import { findGos } from '../gos.ts';
import { fetchPackages, inRoot, ROOTS } from '../package-roots.ts';

export interface Command {
  command: readonly [string, ...string[]];
  environment?: Record<string, string>;
}

export interface App {
  /** Of its folder, and of its picture. */
  name: string;
  title: string;
  /** Of its files, where another app has the same ones. */
  folder?: string;
  source: string;
  frameType: KnownFrameType;
  /** Own functions, each with a text of the lines that it may be at: leaf first, as they call each other. */
  own: readonly (readonly [name: string, line: RegExp])[];
  /** Functions that its framework and what runs it have further out, in this order. */
  outer: readonly string[];
  /** What samples in the innermost own function say of the process or thread. */
  attribute?: readonly [key: string, value: string];
  /** The function from which on the docs have a picture. */
  pictureFrom?: string;
  /** Least share of samples that are whole and named, where that is not 98 %. */
  whole?: number;
  /** Undefined, and a printed reason, where it can't be had. */
  prepare(): Command[] | undefined;
}

export const PORT = 18800;
const ADDRESS = `127.0.0.1:${PORT}`;

const DEBIAN = { suite: 'bookworm', php: '8.2' };
const UBUNTU = { suite: 'noble', php: '8.3' };

/** In a root of its own, with the app's files in /tmp/app. */
function inPackages(
  name: string,
  packages: readonly string[],
  programs: readonly (readonly [string, ...string[]])[],
  place: (root: string, folder: string) => void = (root, folder) =>
    cpSync(folder, join(root, 'tmp/app'), { recursive: true }),
  suite = DEBIAN.suite,
): Command[] | undefined {
  const root = fetchPackages(join(ROOTS, `apps-${name}`), suite, packages);
  if (root === undefined) return undefined;
  rmSync(join(root, 'tmp'), { recursive: true, force: true });
  for (const folder of ['tmp', 'etc', 'var/log/nginx', 'var/lib/nginx'])
    mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0::/:/bin/sh\n');
  writeFileSync(join(root, 'etc/group'), 'root:x:0:\n');
  place(root, join(import.meta.dirname, name));
  return programs.map(([program, ...args]) => {
    const [first, ...rest] = inRoot(root, program).command;
    return { command: [first, ...rest, ...args], environment: { PHP_INI_SCAN_DIR: '/tmp/app' } };
  });
}

const puma = (name: string, library: string, { suite } = DEBIAN) =>
  inPackages(
    name,
    [library, 'puma'],
    [['/usr/bin/puma', '-q', '-w', '2', '-t', '2:2', '-b', `tcp://${ADDRESS}`, '/tmp/app/config.ru']],
    undefined,
    suite,
  );

/** PHP-FPM behind nginx. `options`: of PHP-FPM. */
const fpm = (name: string, packages: string[], { suite, php } = DEBIAN, options: string[] = []) =>
  inPackages(
    name,
    [`php${php}-fpm`, 'nginx-light', ...packages],
    [
      [`/usr/sbin/php-fpm${php}`, '-R', '-y', '/tmp/app/php-fpm.conf', ...options],
      ['/usr/sbin/nginx', '-c', '/tmp/app/nginx.conf'],
    ],
    (root, folder) => {
      for (const from of [join(import.meta.dirname, 'php'), folder])
        cpSync(from, join(root, 'tmp/app'), { recursive: true });
    },
    suite,
  );

const gunicorn = (name: string, ...packages: string[]) =>
  inPackages(
    name,
    ['gunicorn', ...packages],
    [['/usr/bin/gunicorn', '-w', '2', '-b', ADDRESS, '--chdir', '/tmp/app', 'shop:app']],
  );

function tomcat(): Command[] | undefined {
  const home = '/usr/share/tomcat10';
  const classPath = [`${home}/bin/bootstrap.jar`, `${home}/bin/tomcat-juli.jar`].join(':');
  const folders = [`-Dcatalina.home=${home}`, '-Dcatalina.base=/tmp/tomcat'];
  return inPackages(
    'tomcat',
    ['tomcat10', 'openjdk-17-jre-headless'],
    [
      [
        '/usr/lib/jvm/java-17-openjdk-amd64/bin/java',
        ...folders,
        ...['-cp', classPath, 'org.apache.catalina.startup.Bootstrap', 'start'],
      ],
    ],
    (root, folder) => {
      const base = join(root, 'tmp/tomcat');
      const classes = join(base, 'webapps/ROOT/WEB-INF/classes');
      mkdirSync(classes, { recursive: true });
      cpSync(join(folder, 'server.xml'), join(base, 'conf/server.xml'));
      const servlets = join(root, 'usr/share/java/tomcat10-servlet-api.jar');
      execFileSync('javac', ['--release', '17', '-cp', servlets, '-d', classes, join(folder, 'Orders.java')]);
    },
  );
}

function dotnet(): Command[] | undefined {
  const [found] = findDotnets();
  if (found === undefined) return undefined;
  const { command, environment } = runAssembly(found, '../apps/dotnet/shop.dll');
  return [{ command: command as [string, ...string[]], environment }];
}

const kestrel = () =>
  inPackages(
    'aspnet',
    ['aspnetcore-runtime-10.0'],
    [['/usr/lib/dotnet/dotnet', '/tmp/app/shop.dll']],
    undefined,
    UBUNTU.suite,
  );

function go(): Command[] | undefined {
  const [found] = findGos();
  return found && [{ command: [found.compile('../apps/go/shop.go')] }];
}

function beam(
  [found]: Erlang[],
  run: (erlang: Erlang, script: string) => string[],
  script: string,
): Command[] | undefined {
  const [program, ...args] = found ? run(found, join(import.meta.dirname, script)) : [];
  return program === undefined ? undefined : [{ command: [program, ...args] }];
}

const SINATRA: Pick<App, 'source' | 'frameType' | 'own' | 'outer'> = {
  ...{ source: 'config.ru', frameType: 'ruby' },
  own: [
    ['block in of', /Math.sqrt/],
    ['of', /Math.sqrt/],
    ['block in orders', /Price.of/],
    ['orders', /map/],
    ['block in <class:Shop>', /orders\(200\)/],
  ],
  outer: ['dispatch!', 'process_client', 'block in spawn_thread'],
};

const PHP: Pick<App, 'source' | 'frameType' | 'own' | 'outer'> = {
  ...{ source: 'index.php', frameType: 'php' },
  own: [
    ['Price::of', /\$sum|for|function/],
    ['{closure:15}', /Price::of/],
    ['orders', /array_map/],
    ['{main}', /orders\(300\)/],
  ],
  outer: ['php_execute_script', '_start'],
};
const TRACING_JIT = ['-d', 'opcache.jit=tracing', '-d', 'opcache.jit_buffer_size=16M'];

export const APPS: readonly App[] = [
  {
    ...SINATRA,
    ...{ name: 'sinatra', title: 'Sinatra on Puma' },
    prepare: () => puma('sinatra', 'ruby-sinatra'),
  },
  {
    ...SINATRA,
    ...{ name: 'sinatra-ubuntu', title: 'Sinatra on Puma, Ruby 3.2 of Ubuntu', folder: 'sinatra' },
    prepare: () => puma('sinatra', 'ruby-sinatra', UBUNTU),
  },
  {
    ...{ name: 'rails', title: 'Rails on Puma', source: 'config.ru', frameType: 'ruby' },
    own: [
      ['block in of', /Math.sqrt/],
      ['of', /Math.sqrt/],
      ['block in totals', /Price.of/],
      ['totals', /map/],
      ['index', /render/],
    ],
    outer: ['process_action', 'process_client', 'block in spawn_thread'],
    pictureFrom: 'totals',
    prepare: () => puma('rails', 'rails'),
  },
  {
    ...PHP,
    ...{ name: 'php', title: 'PHP-FPM behind nginx' },
    prepare: () => fpm('php', []),
  },
  {
    ...PHP,
    ...{ name: 'php-jit', title: 'PHP-FPM 8.3 of Ubuntu, tracing JIT', folder: 'php' },
    prepare: () => fpm('php', [], UBUNTU, TRACING_JIT),
  },
  {
    ...{ name: 'symfony', title: 'Symfony on PHP-FPM', source: 'index.php', frameType: 'php' },
    own: [
      ['Price::of', /\$sum|for|function/],
      ['Shop::orders', /array_map/],
    ],
    outer: ['Symfony\\Component\\HttpKernel\\HttpKernel::handleRaw', '{main}', '_start'],
    pictureFrom: 'Symfony\\Component\\HttpKernel\\HttpKernel::handleRaw',
    prepare: () => fpm('symfony', ['php-symfony-framework-bundle']),
  },
  {
    ...{ name: 'laravel', title: "Laravel's router on PHP-FPM", source: 'index.php', frameType: 'php' },
    own: [
      ['OrderController::price', /\$sum|for|function/],
      ['OrderController::{closure:15}', /price/],
      ['OrderController::index', /map/],
    ],
    outer: ['Illuminate\\Routing\\Router::dispatch', '{main}', '_start'],
    prepare: () => fpm('laravel', ['php-laravel-framework']),
  },
  {
    ...{ name: 'mojolicious', title: 'Mojolicious on Hypnotoad', source: 'shop.pl', frameType: 'perl' },
    own: [
      ['Shop::price', /\$sum|sub/],
      ['Shop::orders', /map/],
    ],
    outer: ['Mojolicious::handler', 'Mojo::Server::Prefork::_spawn', 'Mojo::Server::Hypnotoad::run'],
    pictureFrom: 'Mojolicious::handler',
    prepare: () =>
      inPackages('mojolicious', ['libmojolicious-perl'], [['/usr/bin/hypnotoad', '-f', '/tmp/app/shop.pl']]),
  },
  {
    ...{ name: 'nginx-lua', title: "nginx with OpenResty's Lua", source: 'shop.lua', frameType: 'luajit' },
    own: [
      ['price', /sum|for|function/],
      ['orders', /price|format/],
      ['answer', /orders|say|function/],
    ],
    outer: ['ngx_http_lua_run_thread', 'ngx_process_events_and_timers', 'main', '_start'],
    pictureFrom: 'ngx_http_lua_run_thread',
    prepare: () =>
      inPackages(
        'nginx-lua',
        ['nginx', 'libnginx-mod-http-lua'],
        [['/usr/sbin/nginx', '-c', '/tmp/app/nginx.conf']],
      ),
  },
  {
    ...{ name: 'dotnet', title: ".NET's HttpListener", source: 'shop.cs', frameType: 'dotnet' },
    own: [
      ['Shop.Price.Of', /sum|for/],
      ['Shop.Server.Answer', /^ {4}\{|Load|Select|WriteAsync/],
    ],
    outer: ['System.Threading.ThreadPoolWorkQueue.Dispatch'],
    pictureFrom: 'System.Threading.ThreadPoolWorkQueue.Dispatch',
    prepare: dotnet,
  },
  {
    ...{ name: 'aspnet', title: 'ASP.NET Core on Kestrel', source: 'shop.cs', frameType: 'dotnet' },
    own: [
      ['Shop.Price.Of', /sum|for/],
      ['Shop.Server.Orders', /orders|text/],
    ],
    outer: [
      'Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpProtocol.ProcessRequests',
      'System.Threading.ThreadPoolWorkQueue.Dispatch',
    ],
    pictureFrom: 'Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpProtocol.ProcessRequests',
    prepare: kestrel,
  },
  {
    ...{ name: 'go', title: "Go's net/http", source: 'shop.go', frameType: 'go' },
    own: [
      ['main.price', /sum|for/],
      ['main.orders', /price/],
      ['main.main.labelled.func1', /pprof.Do|func/],
    ],
    outer: ['net/http.(*conn).serve', 'runtime.goexit'],
    pictureFrom: 'net/http.(*conn).serve',
    prepare: go,
  },
  {
    ...{ name: 'express', title: 'Express on Node', source: 'shop.js', frameType: 'v8js' },
    own: [
      ['price', /sum|for/],
      ['<anonymous>', /price|app.get/],
      ['orders', /from/],
    ],
    outer: ['handle', 'parserOnIncoming', '_start'],
    prepare: () => inPackages('express', ['node-express'], [['/usr/bin/node', '/tmp/app/shop.js']]),
  },
  {
    ...{ name: 'flask', title: 'Flask on Gunicorn', source: 'shop.py', frameType: 'cpython' },
    own: [
      ['price.<locals>.<genexpr>', /sqrt/],
      ['price', /sqrt|def/],
      ['orders', /price/],
    ],
    outer: ['Flask.wsgi_app', 'SyncWorker.run', '_start'],
    // the code of a template that is compiled for each request is gone with it
    whole: 0.9,
    prepare: () => gunicorn('flask', 'python3-flask'),
  },
  {
    ...{ name: 'django', title: 'Django on Gunicorn', source: 'shop.py', frameType: 'cpython' },
    own: [
      ['price.<locals>.<genexpr>', /sqrt/],
      ['price', /sqrt|def/],
      ['orders', /price/],
    ],
    outer: ['WSGIHandler.__call__', 'SyncWorker.run', '_start'],
    prepare: () => gunicorn('django', 'python3-django'),
  },
  {
    ...{ name: 'tomcat', title: 'A servlet on Tomcat', source: 'Orders.java', frameType: 'jvm' },
    own: [
      ['shop.Orders.price', /sum|for/],
      ['shop.Orders.doGet', /price/],
    ],
    outer: ['jakarta.servlet.http.HttpServlet.service', 'java.lang.Thread.run'],
    prepare: tomcat,
  },
  {
    ...{ name: 'cowboy', title: 'Cowboy on Erlang/OTP 29', source: 'shop.erl', frameType: 'beam' },
    own: [
      ['shop:sum/2', /sum/],
      ['shop:price/1', /sum|price/],
      ["shop:'-orders/1-fun-0-'/1", /price/],
      ['shop:init/2', /orders|reply/],
    ],
    outer: ['cowboy_handler:execute/2', 'cowboy_stream_h:request_process/3', 'proc_lib:init_p_do_apply/3'],
    prepare: () => beam(packagedErlang('sid', 'cowboy', ['erlang-cowboy']), runModule, 'cowboy/shop.erl'),
  },
  {
    ...{ name: 'elixir', title: 'Elixir behind inets', source: 'shop.exs', frameType: 'beam' },
    own: [
      ['anonymous fn/2 in Shop.Prices.price/1', /sqrt/],
      ['Shop.Prices.price/1', /sqrt|def/],
      ['anonymous fn/1 in Shop.Prices.orders/1', /price/],
      ['Shop.Prices.handle_call/3', /orders/],
    ],
    outer: ['gen_server:try_handle_call/4', 'gen_server:handle_msg/6', 'proc_lib:init_p_do_apply/3'],
    attribute: [BEAM_PROCESS_NAME, 'Elixir.Shop.Prices'],
    pictureFrom: 'gen_server:handle_msg/6',
    prepare: () => beam(packagedElixir('bookworm'), runScript, 'elixir/shop.exs'),
  },
];
