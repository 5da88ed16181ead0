// Pages for people who follow a link: plain HTML without scripts.
import type { Response } from 'express';
import { escapeHtml } from '../core/protocols/html';

const HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-store',
  // The address holds a code that must not leak to other sites. With no-referrer, browsers would also omit our own
  // origin from form submissions.
  'Referrer-Policy': 'same-origin',
  // A window that opened the page, or that it opened, gets no reference to it: it could redirect a login.
  'Cross-Origin-Opener-Policy': 'same-origin',
};
const STYLE =
  'body{font:16px system-ui;max-width:36rem;margin:4rem auto;padding:0 1rem}' +
  'label{display:block;margin:1rem 0}input{display:block;font:inherit;padding:.4rem;width:100%;box-sizing:border-box}' +
  'label.choice{margin:.4rem 0}label.choice input{display:inline;width:auto;margin-right:.5rem}' +
  'fieldset{margin:1rem 0;border:1px solid #888}code{font-size:1.4rem;letter-spacing:.1rem}' +
  'button{font:inherit;padding:.4rem 1rem;margin-right:.5rem}.problem{color:#a00}';

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
  const body = `<main><h1>${escapeHtml(title)}</h1><p>${escapeHtml(text)}</p>${more}</main>`;
  const viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">';
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
