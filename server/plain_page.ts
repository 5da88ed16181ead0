// Pages for people who follow a link: plain HTML without scripts.
import type { Response } from 'express';
import { escapeHtml } from '../core/protocols/html';

const HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-store',
  // The address holds a code that must not leak to other sites. With no-referrer, browsers would also omit our own
  // origin from form submissions.
  'Referrer-Policy': 'same-origin',
  // A window that opened the page, or that it opened, gets no reference to it: it could redirect a login. Pages on
  // which a program on the web waits for an answer replace it (OPENER_KEPT).
  'Cross-Origin-Opener-Policy': 'same-origin',
};
/**
 * For pages of a login that a program on the web may have opened in a popup: with another policy, its own page in that
 * popup would find no `opener` to hand the code to (HTML, 7.1.3.1), and the popup would be `closed` at once.
 */
export const OPENER_KEPT = { 'Cross-Origin-Opener-Policy': 'unsafe-none' };

// The tokens of the dashboard (clients/dashboard/DESIGN.md), light and dark: these pages work without its files.
const LIGHT =
  '--ground:#f7f8fa;--surface:#fff;--line:#dfe3ea;--line-strong:#8a94a6;--text:#18202e;--faint:#566176;' +
  '--accent:#2a55c9;--on-accent:#fff;--bad:#b3261e;--bad-soft:#fdeceb;--low:#f1f3f6';
const DARK =
  '--ground:#0f141c;--surface:#171d28;--line:#2b3444;--line-strong:#76839b;--text:#e6eaf2;--faint:#a3aec2;' +
  '--accent:#8fb0ff;--on-accent:#0f1a33;--bad:#ff9a91;--bad-soft:#3a1a1a;--low:#1d2431';
const STYLE =
  `:root{color-scheme:light dark;${LIGHT}}@media(prefers-color-scheme:dark){:root{${DARK}}}` +
  '*{box-sizing:border-box}' +
  'body{background:var(--ground);color:var(--text);font:15px/1.5 system-ui,sans-serif;margin:0;padding:1rem}' +
  'header{font-weight:600;display:flex;gap:.5rem;align-items:center;margin-bottom:1.25rem}' +
  'header span{background:var(--accent);border-radius:6px;height:1.4rem;width:1.4rem}' +
  'main{background:var(--surface);border:1px solid var(--line);border-radius:8px;margin:8vh auto 0;max-width:34rem;' +
  'overflow-wrap:anywhere;padding:1.5rem}h1{font-size:1.4rem;letter-spacing:-.01em;line-height:1.3;margin:0 0 .75rem}' +
  'a{color:var(--accent)}label{display:block;font-weight:500;margin:.9rem 0}' +
  'input{background:var(--surface);border:1px solid var(--line-strong);border-radius:6px;color:var(--text);' +
  'display:block;font:inherit;margin-top:.25rem;padding:.45rem .7rem;width:100%}' +
  'label.choice{align-items:flex-start;display:flex;font-weight:400;gap:.6rem;margin:.5rem 0}' +
  'label.choice input{accent-color:var(--accent);flex:none;height:1.1rem;margin:.2rem 0 0;width:1.1rem}' +
  'fieldset{border:1px solid var(--line);border-radius:8px;margin:1rem 0;min-width:0;padding:.5rem 1rem}' +
  'legend{font-weight:600;padding:0 .3rem}code{background:var(--low);border-radius:6px;font-size:1.4rem;' +
  'letter-spacing:.1rem;padding:.15rem .5rem}' +
  'pre{background:var(--low);border-radius:6px;overflow:auto;padding:.75rem}' +
  'dl{margin:1rem 0}dt{color:var(--faint);font-size:.87rem}dd{margin:0 0 .5rem}' +
  'button{background:var(--accent);border:1px solid var(--accent);border-radius:6px;color:var(--on-accent);' +
  'cursor:pointer;font:inherit;font-weight:500;margin:.5rem .5rem 0 0;padding:.4rem .9rem}' +
  'button~button,p button,form+form button{background:var(--surface);border-color:var(--line-strong);' +
  'color:var(--text)}' +
  ':focus-visible{outline:2px solid var(--accent);outline-offset:2px}' +
  '.problem{background:var(--bad-soft);border:1px solid var(--bad);border-left-width:4px;border-radius:6px;' +
  'padding:.6rem .9rem}';

/** @param more HTML below the text */
export function sendFormPage(response: Response, status: number, title: string, text: string, more = ''): void {
  const { headers, html } = formPage(title, text, more);
  response.writeHead(status, headers).end(html);
}

/** @param formTargets where forms of the page may lead to in the end, beside this server */
export function formPage(
  title: string,
  text: string,
  more: string,
  formTargets = '',
): { headers: Record<string, string>; html: string } {
  const brand = '<header><span></span>Platform</header>';
  const body = `<main>${brand}<h1>${escapeHtml(title)}</h1><p>${escapeHtml(text)}</p>${more}</main>`;
  const viewport =
    '<meta name="viewport" content="width=device-width, initial-scale=1">' +
    '<meta name="color-scheme" content="light dark">';
  const head = `<meta charset="utf-8">${viewport}<title>${escapeHtml(title)}</title><style>${STYLE}</style>`;
  const policy = [
    ...["default-src 'none'", "style-src 'unsafe-inline'", `form-action 'self' ${formTargets}`.trim()],
    ...["frame-ancestors 'none'", "base-uri 'none'"],
  ].join('; ');
  return {
    headers: { ...HEADERS, 'Content-Security-Policy': policy },
    html: `<!doctype html><html lang="en"><head>${head}</head><body>${body}</body></html>`,
  };
}

/** A field of a query or a form; empty where it is missing or no text. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
