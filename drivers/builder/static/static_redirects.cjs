// Rules of `_redirects`, in the format of Netlify, Cloudflare and GitLab Pages: `/from /to 301`, one per line.
'use strict';

const fs = require('node:fs');
const path = require('node:path');

/**
 * @typedef {{ parts: string[], to: string, status: number, isForced: boolean }} Rule
 * @typedef {(what: string) => Error} Fail
 */

const REWRITE = 200;
const STATUSES = [REWRITE, 301, 302, 303, 307, 308, 404];
const BYTES_MAX = 128 << 10;
const RULES_MAX = 2000;

/**
 * The rules of a site in order; empty without such a file. Throws an Error with the line number.
 * @param {import('./static_files.cjs').Site} site
 */
function readRules(site) {
  const file = path.join(site.root, '_redirects');
  if (!fs.existsSync(file)) return [];
  const text = fs.readFileSync(file, 'utf8');
  if (Buffer.byteLength(text) > BYTES_MAX) throw new Error('_redirects is larger than 128 KB.');
  const rules = text
    .replace(/^\ufeff/, '')
    .split(/\r?\n/)
    .map((line, i) => parseRule(line, (what) => new Error(`Line ${i + 1} of _redirects ${what}.`)))
    .filter((rule) => rule !== null);
  if (rules.length > RULES_MAX) throw new Error(`_redirects has more than ${RULES_MAX} rules.`);
  return rules;
}

/**
 * @param {string} line
 * @param {Fail} fail
 * @returns {Rule | null}
 */
function parseRule(line, fail) {
  const words = line
    .replace(/(^|\s)#.*$/, '')
    .trim()
    .split(/\s+/);
  const [from = '', to, statusWord = '301', ...more] = words;
  if (from === '') return null;
  if (to === undefined) throw fail('is not of the form `/from /to status`');
  requireSource(from, fail);
  const status = /^(\d{3})(!?)$/.exec(statusWord);
  if (more.length > 0 || !status) {
    const named = /^\w+=/.test(to) ? to : (more[0] ?? statusWord);
    throw fail(`has ${JSON.stringify(named.slice(0, 60))}. Conditions are not supported, only \`/from /to status\``);
  }
  if (!STATUSES.includes(Number(status[1])))
    throw fail(`has the status ${status[1]}, which is none of ${STATUSES.join(', ')}`);
  const rule = { parts: from.split('/').filter(Boolean), to, status: Number(status[1]), isForced: status[2] === '!' };
  requireTarget(rule, fail);
  return rule;
}

/**
 * @param {string} from
 * @param {Fail} fail
 */
function requireSource(from, fail) {
  if (!from.startsWith('/')) throw fail(`begins with ${JSON.stringify(from.slice(0, 60))}, which is not a path`);
  if (/\*./.test(from) || /[^/]\*/.test(from)) throw fail('has a * that is not its last part, as in `/news/*`');
  if (/[?]/.test(from)) throw fail('matches a query, which is not supported');
}

/**
 * @param {Rule} rule
 * @param {Fail} fail
 */
function requireTarget({ parts, to, status }, fail) {
  const isElsewhere = /^https?:\/\//i.test(to);
  if (!isElsewhere && !/^\/(?!\/)/.test(to)) throw fail('leads to neither a path nor an http or https address');
  if (isElsewhere && (status === REWRITE || status === 404))
    throw fail('fetches from another host, which is not supported: redirect to it with 301 or 302');
  if (isElsewhere && /^https?:\/\/[^/]*:[a-z]/i.test(to)) throw fail('has a placeholder in the name of a host');
  const names = parts.map((part) => (part === '*' ? ':splat' : part));
  const missing = placeholdersOf(to).find((name) => !names.includes(name));
  if (missing !== undefined) throw fail(`uses ${missing}, which its first path does not have`);
}

/**
 * @param {string} to
 * @returns {string[]}
 */
function placeholdersOf(to) {
  return to.replace(/^https?:\/\/[^/]*/i, '').match(/:[a-z]\w*/gi) ?? [];
}

/**
 * The target of the first matching rule, as a percent-encoded path; null where none matches.
 * @param {Rule[]} rules
 * @param {string[]} parts of the requested path, decoded
 */
function matchRule(rules, parts) {
  for (const rule of rules) {
    const values = valuesOf(rule.parts, parts);
    if (values !== null) return { ...rule, to: fill(rule.to, values) };
  }
  return null;
}

/**
 * The values of the placeholders; null where the path does not match.
 * @param {string[]} pattern
 * @param {string[]} parts
 */
function valuesOf(pattern, parts) {
  const isOpen = pattern.at(-1) === '*';
  const fixed = isOpen ? pattern.length - 1 : pattern.length;
  if (isOpen ? parts.length < fixed : parts.length !== fixed) return null;
  /** @type {Map<string, string>} */
  const values = new Map();
  if (isOpen) values.set(':splat', parts.slice(fixed).map(encodeURIComponent).join('/'));
  for (const [i, part] of pattern.slice(0, fixed).entries()) {
    const encoded = encodeURIComponent(parts[i] ?? '');
    if (part.startsWith(':')) values.set(part, encoded);
    else if (part !== parts[i] && part !== encoded) return null;
  }
  return values;
}

/**
 * @param {string} to
 * @param {Map<string, string>} values
 */
function fill(to, values) {
  const [, host, rest = ''] = /^(https?:\/\/[^/]*)?(.*)$/i.exec(to) ?? [];
  const filled = rest.replace(/:[a-z]\w*/gi, (name) => values.get(name) ?? name);
  return (host ?? '') + (host === undefined ? filled.replace(/^\/+/, '/') : filled);
}

module.exports = { REWRITE, matchRule, readRules };
