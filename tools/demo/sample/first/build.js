// The build: a greeting becomes a page.
const { mkdirSync, readFileSync, writeFileSync } = require('node:fs');

const greeting = readFileSync('greeting.txt', 'utf8').trim();
mkdirSync('public', { recursive: true });
writeFileSync('public/index.html', `<!doctype html>\n<title>${greeting}</title>\n<h1>${greeting}</h1>\n`);
console.log(`made public/index.html: ${greeting}`);
