'use strict';

const http = require('node:http');

const port = Number(process.env.PORT) || 8080;
const page = `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>A page and a worker</title>
  <style>
    :root { color-scheme: light dark; --ink: #251a2e; --soft: #6d6077; --paper: #fbf9fc; --card: #fff; --line: #e7e0ec;
      --accent: #7e3aaf; --glow: #ecd9fa; }
    @media (prefers-color-scheme: dark) { :root { --ink: #efe8f4; --soft: #a99bb4; --paper: #15101a; --card: #1e1726;
      --line: #33283e; --accent: #d0a2f2; --glow: #3b2150; } }
    body { margin: 0; min-height: 100vh; display: grid; place-items: center;
      background: radial-gradient(60rem 30rem at 50% -8rem, var(--glow), transparent) var(--paper); color: var(--ink);
      font: 1rem/1.6 ui-sans-serif, system-ui, sans-serif; }
    main { width: min(42rem, 100% - 3rem); padding: 4rem 0; }
    h1 { margin: 0 0 .5rem; font-size: clamp(2.2rem, 6vw, 3.4rem); line-height: 1.1; letter-spacing: -.02em; }
    p { margin: 0 0 2rem; color: var(--soft); font-size: 1.15rem; }
    ul { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); margin: 0; padding: 0;
      list-style: none; }
    li { padding: 1.25rem; border: 1px solid var(--line); border-radius: .9rem; background: var(--card); }
    strong { display: block; color: var(--accent); } code { font: .9em ui-monospace, monospace; }
  </style>
</head>
<body>
  <main>
    <h1>One for you, one for the work.</h1>
    <p>The <code>Procfile</code> names two process types. Each has its own size and its own number of instances.</p>
    <ul>
      <li><strong>web</strong>answers requests, like this one. The code is in <code>web.js</code>.</li>
      <li><strong>worker</strong>works in the background; read what it does in the logs. The code is in
        <code>worker.js</code>.</li>
    </ul>
  </main>
</body>
</html>
`;

const server = http.createServer((request, response) => {
  const found = request.url.split('?')[0] === '/';
  const text = found ? page : 'Not found\n';
  response.writeHead(found ? 200 : 404, {
    'content-type': `text/${found ? 'html' : 'plain'}; charset=utf-8`,
    'content-length': Buffer.byteLength(text),
  });
  response.end(request.method === 'HEAD' ? undefined : text);
});

server.listen(port, process.env.HOST || process.env.SVC_LISTEN_ADDRESS || '127.0.0.1', () =>
  console.log(`Listening on port ${server.address().port}`),
);

process.on('SIGTERM', () => {
  server.close(() => process.exit(0));
  server.closeIdleConnections();
});
