'use strict';

module.exports = ({ greeting, node, requests, process_id }) => `<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Node.js is running</title>
  <style>
    :root { color-scheme: light dark; --ink: #17210f; --soft: #5d6a52; --paper: #f8faf5; --line: #dfe6d6;
      --accent: #3f7d20; --glow: #d9f2c4; }
    @media (prefers-color-scheme: dark) { :root { --ink: #e9f0e2; --soft: #9dab91; --paper: #11160d; --line: #2b3522;
      --accent: #a3d977; --glow: #26401a; } }
    body { margin: 0; min-height: 100vh; display: grid; place-items: center;
      background: radial-gradient(60rem 30rem at 50% -8rem, var(--glow), transparent) var(--paper); color: var(--ink);
      font: 1rem/1.6 ui-sans-serif, system-ui, sans-serif; }
    main { width: min(40rem, 100% - 3rem); padding: 4rem 0; }
    h1 { margin: 0 0 .5rem; font-size: clamp(2.2rem, 6vw, 3.4rem); line-height: 1.1; letter-spacing: -.02em; }
    p { margin: 0 0 2rem; color: var(--soft); font-size: 1.15rem; }
    dl { display: grid; grid-template-columns: repeat(3, 1fr); gap: 1rem; margin: 0; border-top: 1px solid var(--line);
      padding-top: 1.5rem; }
    dt { color: var(--soft); font-size: .85rem; }
    dd { margin: 0; font-size: 1.5rem; font-variant-numeric: tabular-nums; color: var(--accent); }
    code { font: .9em ui-monospace, monospace; }
  </style>
</head>
<body>
  <main>
    <h1>${greeting ? escape(greeting) : 'Node.js is running.'}</h1>
    <p>${hintFor(greeting)} The code is in <code>server.js</code>; <code>/api/state</code> answers as JSON.</p>
    <dl>
      <div><dt>Version</dt><dd>${node}</dd></div>
      <div><dt>Requests</dt><dd>${requests}</dd></div>
      <div><dt>Process</dt><dd>${process_id}</dd></div>
    </dl>
  </main>
</body>
</html>
`;

function hintFor(greeting) {
  if (greeting) return 'That is what the variable <code>GREETING</code> says.';
  return 'Set the variable <code>GREETING</code>, restart, and this headline is yours.';
}

function escape(text) {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
