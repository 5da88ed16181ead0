'use strict';

// Writes public/ into dist/, with the compressed forms beside the files. In place of it, your bundler.
const fs = require('node:fs');
const path = require('node:path');
const zlib = require('node:zlib');

fs.mkdirSync('dist', { recursive: true });
for (const name of fs.readdirSync('public')) {
  const bytes = fs.readFileSync(path.join('public', name));
  fs.writeFileSync(path.join('dist', name), bytes);
  fs.writeFileSync(path.join('dist', `${name}.br`), zlib.brotliCompressSync(bytes));
  console.log(`dist/${name}  ${bytes.length} bytes`);
}
