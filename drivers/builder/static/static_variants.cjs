// Compressed forms of site files: one pack file, which is valid once its index is written. Precompressed files of the
// build (`app.js.br`) are used where the pack has none, if they unpack to the original.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { brotliDecompressSync, gunzipSync } = require('node:zlib');

/**
 * @typedef {{ coding: string, file?: string, offset: number, bytes: number }} Variant
 * @typedef {{ file: string, name: string, stat: fs.Stats }} Found
 * @typedef {{ size: number, seconds?: number, digest?: string | null, variants: Variant[] }} Entry
 */

const LIST = path.join(__dirname, 'static.json');
const PACK = path.join(__dirname, 'static.pack');
const BESIDE = [
  { coding: 'br', suffix: '.br', unpack: brotliDecompressSync },
  { coding: 'gzip', suffix: '.gz', unpack: gunzipSync },
];
const BESIDE_BYTES_MAX = 8 << 20;

/**
 * Returns a function that finds the forms of a file. An incomplete index or pack is ignored.
 * @param {import('./static_files.cjs').Site} site
 * @returns {(found: Found) => Entry}
 */
function openVariants(site) {
  const listed = readList(site);
  /** @type {Map<string, Entry & { mtimeMs: number }>} */
  const beside = new Map();
  return ({ file, stat }) => {
    const entry = listed.get(path.relative(site.root, file));
    if (entry?.size === stat.size && entry.seconds === Math.floor(stat.mtimeMs / 1000)) return entry;
    const known = beside.get(file);
    if (known?.mtimeMs === stat.mtimeMs && known.size === stat.size) return known;
    const { size, mtimeMs } = stat;
    const made = { size, mtimeMs, variants: size > BESIDE_BYTES_MAX ? [] : variantsBeside(file, size) };
    beside.set(file, made);
    return made;
  };
}

/**
 * @param {import('./static_files.cjs').Site} site
 * @returns {Map<string, Entry>}
 */
function readList(site) {
  try {
    const { directory, bytes, files } = JSON.parse(fs.readFileSync(LIST, 'utf8'));
    if (directory !== site.directory || fs.statSync(PACK).size !== bytes) return new Map();
    return new Map(files.map((/** @type {Entry & { name: string }} */ entry) => [entry.name, entry]));
  } catch {
    return new Map();
  }
}

/**
 * @param {string} file
 * @param {number} size
 * @returns {Variant[]}
 */
function variantsBeside(file, size) {
  return BESIDE.flatMap(({ coding, suffix, unpack }) => {
    try {
      const stat = fs.lstatSync(file + suffix);
      if (!stat.isFile() || stat.size > size) return [];
      const unpacked = unpack(fs.readFileSync(file + suffix), { maxOutputLength: Math.max(size, 1) });
      return unpacked.equals(fs.readFileSync(file))
        ? [{ coding, file: file + suffix, offset: 0, bytes: stat.size }]
        : [];
    } catch {
      return [];
    }
  });
}

/**
 * The form with the highest weight (RFC 9110 section 12.5.3), of equals the smallest; null for the uncompressed file,
 * which is also sent to a client that accepts no form at all: better than an error.
 * @param {string | undefined} header
 * @param {Pick<Entry, 'variants'>} entry
 */
function chooseVariant(header, { variants }) {
  if (header === undefined) return null;
  const weights = parseWeights(header);
  const weightOf = (/** @type {string} */ coding) =>
    weights.get(coding) ?? weights.get(`x-${coding}`) ?? weights.get('*') ?? 0;
  const [best = null] = variants
    .filter(({ coding }) => weightOf(coding) > 0)
    .sort((a, b) => weightOf(b.coding) - weightOf(a.coding) || a.bytes - b.bytes);
  return best !== null && weightOf(best.coding) >= (weights.get('identity') ?? 0) ? best : null;
}

/**
 * @param {string} header
 * @returns {Map<string, number>}
 */
function parseWeights(header) {
  const weights = new Map();
  for (const item of header.toLowerCase().split(',')) {
    const [coding = '', ...parameters] = item.split(';').map((word) => word.trim());
    const weight = parameters.find((one) => /^q\s*=/.test(one))?.replace(/^q\s*=\s*/, '') ?? '1';
    if (coding !== '' && /^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(weight)) weights.set(coding, Number(weight));
  }
  return weights;
}

module.exports = { LIST, PACK, chooseVariant, openVariants };
