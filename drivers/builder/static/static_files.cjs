// Selects the site directory, and its served files. Copied beside the static server.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

/** @typedef {{ directory: string, root: string, isSource: boolean }} Site */

/** Types of site files: in a directory that is not build output, no other files are served. */
const suffixesOfTypes = {
  'text/html; charset=utf-8': 'html htm shtml',
  'text/css; charset=utf-8': 'css',
  'text/javascript; charset=utf-8': 'js mjs',
  'text/plain; charset=utf-8': 'txt text asc srt lrc vert frag glsl wgsl obj mtl',
  'text/markdown; charset=utf-8': 'md markdown',
  'text/csv; charset=utf-8': 'csv',
  'text/tab-separated-values; charset=utf-8': 'tsv',
  'text/calendar; charset=utf-8': 'ics',
  'text/vcard; charset=utf-8': 'vcf',
  'text/vtt; charset=utf-8': 'vtt',
  'application/json': 'json map topojson',
  'application/geo+json': 'geojson',
  'application/ld+json': 'jsonld',
  'application/manifest+json': 'webmanifest',
  'application/yaml': 'yaml yml',
  'application/xml': 'xml xsl xslt xsd dtd',
  'application/xhtml+xml': 'xhtml xht',
  'application/rss+xml': 'rss',
  'application/atom+xml': 'atom',
  'application/rdf+xml': 'rdf owl',
  'application/gpx+xml': 'gpx',
  'application/vnd.google-earth.kml+xml': 'kml',
  'application/wasm': 'wasm',
  'image/svg+xml': 'svg',
  'image/png': 'png',
  'image/apng': 'apng',
  'image/jpeg': 'jpg jpeg jfif',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'image/avif': 'avif',
  'image/jxl': 'jxl',
  'image/heic': 'heic',
  'image/bmp': 'bmp',
  'image/tiff': 'tif tiff',
  'image/x-icon': 'ico cur',
  'image/ktx2': 'ktx2',
  'font/woff': 'woff',
  'font/woff2': 'woff2',
  'font/ttf': 'ttf',
  'font/otf': 'otf',
  'application/vnd.ms-fontobject': 'eot',
  'audio/mpeg': 'mp3',
  'audio/mp4': 'm4a',
  'audio/ogg': 'ogg oga opus',
  'audio/wav': 'wav',
  'audio/flac': 'flac',
  'audio/aac': 'aac',
  'audio/webm': 'weba',
  'audio/midi': 'mid midi',
  'video/mp4': 'mp4 m4v',
  'video/webm': 'webm',
  'video/ogg': 'ogv',
  'video/quicktime': 'mov',
  'video/mp2t': 'ts m2ts',
  'video/iso.segment': 'm4s',
  'application/vnd.apple.mpegurl': 'm3u8',
  'application/dash+xml': 'mpd',
  'model/gltf-binary': 'glb',
  'model/gltf+json': 'gltf',
  'model/stl': 'stl',
  'model/vnd.usdz+zip': 'usdz',
  'application/pdf': 'pdf',
  'application/epub+zip': 'epub',
  'application/rtf': 'rtf',
  'application/msword': 'doc',
  'application/vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'application/vnd.ms-excel': 'xls',
  'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  'application/vnd.ms-powerpoint': 'ppt',
  'application/vnd.openxmlformats-officedocument.presentationml.presentation': 'pptx',
  'application/vnd.oasis.opendocument.text': 'odt',
  'application/vnd.oasis.opendocument.spreadsheet': 'ods',
  'application/zip': 'zip',
  'application/gzip': 'gz tgz',
  'application/x-bittorrent': 'torrent',
  'application/vnd.android.package-archive': 'apk',
  'application/octet-stream':
    'bin dat data mem pck unityweb tar bz2 xz 7z rar exe msi dmg iso deb rpm crx xpi fbx hdr exr dds basis pbf mvt ' +
    'onnx tflite swf sig',
};
const types = Object.fromEntries(
  Object.entries(suffixesOfTypes).flatMap(([type, suffixes]) => suffixes.split(' ').map((one) => [`.${one}`, type])),
);
const COMPRESSIBLE =
  /^(?:text\/|font\/[to]tf|image\/(?:svg|bmp)|model\/gltf\+|application\/(?:[\w.+-]*\+)?(?:json|xml)$)/;
const ALSO_COMPRESSIBLE = ['application/wasm', 'application/yaml', 'application/vnd.ms-fontobject'];

// Server-side programs of other platforms. Their source is never served, whatever the directory.
const PROGRAM_PAGE =
  /\.(?:php\d?|phtml|phps|phar|aspx?|ashx|asmx|cshtml|jspx?|cgi|fcgi|erb)(?:~|\.(?:bak|old|orig|save|swp))?$/;
/** Suffixes of further file types: such a path is a file, not a page. */
const OTHER_FILES =
  'py pyc rb go rs java class jar war kt kts scala cs fs vb c cc cpp h hpp swift ex exs erl lua pl pm r jl dart tsx ' +
  'jsx cjs cts mts vue svelte astro scss sass less coffee sh bash bat cmd ps1 sql sqlite sqlite3 db env lock toml ' +
  'ini cfg conf config properties log bak old orig save swp tmp pem key crt cer p12 pfx jks br zst';
const fileSuffixes = new Set([...Object.keys(types), ...OTHER_FILES.split(' ').map((one) => `.${one}`)]);

// Manifests, tool settings and keys whose suffixes are those of site files; names in lower case.
const MANIFESTS = [
  /^(?:package|package-lock|npm-shrinkwrap|composer|bower|components|lerna|nx|turbo|angular|vercel)\.json$/,
  /^(?:firebase|netlify|deno|biome|renovate|tslint|app|static|serve|project|workspace|global|cdk|rush)\.json$/,
  /^(?:tsconfig|jsconfig|appsettings|launchsettings|local\.settings|ormconfig|google-services)\b.*\.json$/,
  /^(?:secret|credential|client_secret|service[_-]?account|nodemon|vcpkg)\w*\b.*\.json$/,
  /(?:\.config|\.lock|-adminsdk-.*)\.json$/,
  /^(?:pom|web|build|ivy|phpunit|androidmanifest|packages|nuget)(?:\.\w+)?\.xml$/,
  /(?:^|[._-])(?:requirements|constraints)[\w.-]*\.txt$/,
  /^(?:runtime|cmakelists|passwords?|secrets?|credentials?)\.txt$/,
  /^(?:vite|vitest|webpack|rollup|rspack|esbuild|babel|postcss|tailwind|next|nuxt|svelte|astro|vue|craco)\.config\b/,
  /^(?:jest|karma|playwright|cypress|protractor|eslint|prettier|stylelint|commitlint|metro|ecosystem)\.conf(?:ig)?\b/,
  /^(?:gulpfile|gruntfile|knexfile|webpack\.\w+|ormconfig|nodemon|pm2)\b.*\.m?js$/,
];
// YAML files that browsers and clients of sites read; nearly all others are settings.
const YAML_OF_SITES = /(?:^|\/)(?:(?:openapi|swagger|asyncapi)\b[^/]*|index|latest[\w-]*|admin\/config)\.ya?ml$/;

/**
 * The first directory with an index.html. `isSource`: it is not build output, so that programs and settings may be
 * beside the pages. Null where there is none.
 * @param {string[]} directories
 * @returns {Site | null}
 */
function findSite(directories) {
  const found = directories.find((directory) => isFile(path.join(directory, 'index.html')));
  if (found === undefined) return null;
  const root = fs.realpathSync(found);
  const here = fs.realpathSync('.');
  return { directory: found, root, isSource: here === root || here.startsWith(root === '/' ? '/' : `${root}/`) };
}

/** @param {string} file */
function isFile(file) {
  try {
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

/**
 * @param {Site} site
 * @param {string} name relative to the root of the site, as in the file system
 */
function isServed(site, name) {
  const parts = name.split('/');
  if (parts.some((part, i) => part.startsWith('.') && !(part === '.well-known' && i === 0))) return false;
  const lower = name.toLowerCase();
  if (lower === '_redirects' || lower === '_headers' || PROGRAM_PAGE.test(lower)) return false;
  return !site.isSource || parts[0] === '.well-known' || isOfSites(site, lower, name);
}

/**
 * @param {Site} site
 * @param {string} lower the name in lower case
 * @param {string | null} name null for the unpacked form of a compressed file
 * @returns {boolean}
 */
function isOfSites(site, lower, name) {
  const base = path.posix.basename(lower);
  if (base === 'apple-app-site-association') return true;
  const suffix = path.posix.extname(base);
  if (types[suffix] === undefined) return false;
  if (suffix === '.gz' && base.includes('.', 1) && path.posix.extname(base.slice(0, -3)) !== '')
    return isOfSites(site, lower.slice(0, -3), null);
  if (suffix === '.ts') return name !== null && isVideo(path.join(site.root, name));
  if (suffix === '.yml' || suffix === '.yaml') return YAML_OF_SITES.test(lower);
  return !MANIFESTS.some((manifest) => manifest.test(base)) && !/(?:^|\/)requirements\/[^/]+\.txt$/.test(lower);
}

/**
 * Whether a `.ts` file is MPEG-TS video, not TypeScript: packets of 188 bytes that start with 0x47 (ISO 13818-1).
 * @param {string} file
 */
function isVideo(file) {
  try {
    const fd = fs.openSync(file, 'r');
    const bytes = Buffer.alloc(377);
    const count = fs.readSync(fd, bytes, 0, 377, 0);
    fs.closeSync(fd);
    return count > 188 && [0, 188, 376].every((at) => at >= count || bytes[at] === 0x47);
  } catch {
    return false;
  }
}

/**
 * Whether a path without a file may be a page of a client-side router: it has no file suffix.
 * @param {string[]} parts
 */
function namesPage(parts) {
  const last = (parts.at(-1) ?? '')
    .toLowerCase()
    .replace(/[?;].*$/, '')
    .replace(/(?<![.~\s])[.~\s]+$/, '');
  const isProgram = [...parts, last].some((part) => PROGRAM_PAGE.test(part.toLowerCase()));
  return !isProgram && !fileSuffixes.has(path.posix.extname(last));
}

/** @param {string} name */
function typeOf(name) {
  if (path.posix.basename(name) === 'apple-app-site-association') return 'application/json';
  return types[path.extname(name).toLowerCase()] || 'application/octet-stream';
}

/** @param {string} name */
function isCompressible(name) {
  const type = typeOf(name);
  return COMPRESSIBLE.test(type) || ALSO_COMPRESSIBLE.includes(type);
}

/**
 * Calls `visit` for each file of the site, except links, until it returns false. npm packages are skipped: pages seldom
 * use them, and there are many.
 * @param {Site} site
 * @param {(name: string) => boolean | void} visit
 */
function walk(site, visit) {
  const waiting = [''];
  for (let directory = waiting.shift(); directory !== undefined; directory = waiting.shift()) {
    for (const entry of entriesOf(path.join(site.root, directory))) {
      const name = directory + entry.name;
      if (entry.isFile() && visit(name) === false) return;
      const isHidden = entry.name.startsWith('.') && name !== '.well-known';
      if (entry.isDirectory() && !isHidden && entry.name !== 'node_modules') waiting.push(`${name}/`);
    }
  }
}

/** @param {string} directory */
function entriesOf(directory) {
  try {
    return fs.readdirSync(directory, { withFileTypes: true });
  } catch {
    return [];
  }
}

module.exports = { findSite, isCompressible, isFile, isServed, namesPage, typeOf, walk };
