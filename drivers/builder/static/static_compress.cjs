// Precompresses the text files of a site, and validates its rules.
//   node static_compress.cjs check <directory> ...      fails for invalid rules in _redirects
//   node static_compress.cjs compress <directory> ...
'use strict';

const { createHash } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { promisify } = require('node:util');
const zlib = require('node:zlib');
const { findSite, isCompressible, isServed, walk } = require('./static_files.cjs');
const { readRules } = require('./static_redirects.cjs');
const { LIST, PACK } = require('./static_variants.cjs');

/**
 * @typedef {import('./static_files.cjs').Site} Site
 * @typedef {import('./static_variants.cjs').Variant} Variant
 * @typedef {{ name: string, size: number, seconds: number, digest: string | null, variants: Variant[] }} Work
 * @typedef {{ fd: number, bytes: number, isFull: boolean }} Pack
 */

const brotli = promisify(zlib.brotliCompress);
const gzip = promisify(zlib.gzip);

const FILE_BYTES_MIN = 1024;
const FILE_BYTES_MAX = 8 << 20;
const FILES_MAX = 20_000;
/** Limit of all forms together: the files of an instance have a limit, and those of the user take precedence. */
const PACK_BYTES_MAX = 128 << 20;
const TIME_MS = 60_000;
/** The best quality takes a second per megabyte; that for large sites a tenth, for a few percent more bytes. */
const BEST_QUALITY_BYTES_MAX = { file: 1 << 20, site: 16 << 20 };
const QUALITY_OF_LARGE = 9;
const USEFUL_SHARE = 0.95;
const AT_ONCE = 4;
const NAMES_SHOWN = 3;

main(process.argv[2], process.argv.slice(3)).catch((error) => {
  console.error(error.message);
  process.exit(1);
});

/**
 * @param {string | undefined} verb
 * @param {string[]} directories
 */
async function main(verb, directories) {
  const site = findSite(directories);
  if (site === null) return; // reported by the server
  if (verb === 'check') return check(site);
  await compress(site);
}

/** @param {Site} site */
function check(site) {
  readRules(site);
  if (fs.existsSync(path.join(site.root, '_headers')))
    console.log('_headers is not supported: the fields that it names are not sent.');
  if (!site.isSource) return;
  /** @type {string[]} */
  const refused = [];
  walk(site, (name) => {
    if (!isServed(site, name) && !path.basename(name).startsWith('.')) refused.push(name);
  });
  if (refused.length === 0) return;
  const names = refused.slice(0, NAMES_SHOWN).join(', ');
  const rest = refused.length > NAMES_SHOWN ? ` and ${refused.length - NAMES_SHOWN} more` : '';
  console.log(
    `Not served, because the site is the root directory itself: ${names}${rest}. ` +
      'What lies beside an index.html in public/ is served.',
  );
}

/** @param {Site} site */
async function compress(site) {
  fs.rmSync(LIST, { force: true });
  const work = findWork(site);
  const pack = { fd: fs.openSync(PACK, 'w'), bytes: 0, isFull: false };
  const deadline = Date.now() + TIME_MS;
  const isLarge = work.reduce((sum, { size }) => sum + size, 0) > BEST_QUALITY_BYTES_MAX.site;
  // The fast coding first, so that at the deadline as many files as possible have a form.
  await eachOf(work, deadline, (file) => addForm(site, file, pack, 'gzip', (content) => gzip(content, { level: 9 })));
  await eachOf(work, deadline, (file) => addForm(site, file, pack, 'br', (content) => packBrotli(content, isLarge)));
  fs.fsyncSync(pack.fd);
  fs.closeSync(pack.fd);
  const files = work.filter(({ variants }) => variants.length > 0);
  writeList({ directory: site.directory, bytes: pack.bytes, files });
  report(files, pack.isFull || Date.now() > deadline);
}

/**
 * Smallest first, for the same reason.
 * @param {Site} site
 */
function findWork(site) {
  /** @type {Work[]} */
  const found = [];
  walk(site, (name) => {
    if (!isCompressible(name) || !isServed(site, name)) return;
    const { size, mtimeMs } = fs.statSync(path.join(site.root, name));
    if (size < FILE_BYTES_MIN || size > FILE_BYTES_MAX) return;
    found.push({ name, size, seconds: Math.floor(mtimeMs / 1000), digest: null, variants: [] });
  });
  return found.sort((a, b) => a.size - b.size).slice(0, FILES_MAX);
}

/**
 * @param {Work[]} work
 * @param {number} deadline
 * @param {(file: Work) => Promise<void>} run
 */
async function eachOf(work, deadline, run) {
  const waiting = work.values();
  const runner = async () => {
    for (const file of waiting) {
      if (Date.now() > deadline) return;
      await run(file);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, runner));
}

/**
 * @param {Site} site
 * @param {Work} file
 * @param {Pack} pack
 * @param {string} coding
 * @param {(content: Buffer) => Promise<Buffer>} packed
 */
async function addForm(site, file, pack, coding, packed) {
  if (pack.isFull) return;
  const content = fs.readFileSync(path.join(site.root, file.name));
  if (content.length !== file.size) return;
  const form = await packed(content);
  if (form.length > file.size * USEFUL_SHARE) return;
  if (pack.bytes + form.length > PACK_BYTES_MAX) pack.isFull = true;
  if (pack.isFull) return;
  file.digest ??= createHash('sha256').update(content).digest('base64url').slice(0, 22);
  file.variants.push(append(pack, coding, form));
}

/**
 * @param {Buffer} content
 * @param {boolean} isLarge of the site
 */
function packBrotli(content, isLarge) {
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT, BROTLI_MAX_QUALITY } = zlib.constants;
  const isQuick = isLarge || content.length > BEST_QUALITY_BYTES_MAX.file;
  return brotli(content, {
    params: {
      [BROTLI_PARAM_QUALITY]: isQuick ? QUALITY_OF_LARGE : BROTLI_MAX_QUALITY,
      [BROTLI_PARAM_SIZE_HINT]: content.length,
    },
  });
}

/**
 * @param {Pack} pack
 * @param {string} coding
 * @param {Buffer} form
 * @returns {Variant}
 */
function append(pack, coding, form) {
  for (let written = 0; written < form.length;)
    written += fs.writeSync(pack.fd, form, written, form.length - written, pack.bytes + written);
  const offset = pack.bytes;
  pack.bytes += form.length;
  return { coding, offset, bytes: form.length };
}

/**
 * Renamed to its final name when complete, after the files that it lists.
 * @param {{ directory: string, bytes: number, files: Work[] }} list
 */
function writeList(list) {
  const temporary = `${LIST}.new`;
  fs.writeFileSync(temporary, JSON.stringify(list), { flush: true });
  fs.renameSync(temporary, LIST);
}

/**
 * @param {Work[]} files
 * @param {boolean} isPartial
 */
function report(files, isPartial) {
  const sum = (/** @type {number[]} */ numbers) => Math.ceil(numbers.reduce((a, b) => a + b, 0) / 1000);
  const before = sum(files.map(({ size }) => size));
  const after = sum(files.map(({ variants }) => Math.min(...variants.map(({ bytes }) => bytes))));
  if (files.length > 0) console.log(`Compressed ${files.length} text files from ${before} kB to ${after} kB.`);
  if (isPartial)
    console.log('The limit of a minute and 128 MB was met: some files have no brotli form, or no form at all.');
}
