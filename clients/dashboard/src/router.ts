// Pages by path: a signal with the address, and links that change it.
import { signal } from '@preact/signals';
import { forgetCalls } from './api/calls';

export interface Address {
  path: string;
  query: URLSearchParams;
}

const read = (): Address => ({ path: location.pathname, query: new URLSearchParams(location.search) });

export const address = signal(read());

/** Pages with unsaved changes ask before they are left. */
let mayLeave: () => boolean = () => true;

export function guardLeaving(guard: () => boolean): () => void {
  mayLeave = guard;
  return () => void (mayLeave = () => true);
}

/** Pages whose documents have another policy than all others (server/http/dashboard.ts). */
const OWN_POLICY = /^\/applications\/[^/]+\/runs\/[^/]+\/terminal\/?$/;

/** Shows the page of a path of this server. */
export function navigate(to: string, how: 'push' | 'replace' = 'push'): void {
  if (!mayLeave()) return;
  mayLeave = () => true;
  const { pathname } = new URL(to, location.href);
  const isOtherPage = pathname !== location.pathname;
  if (isOtherPage && (OWN_POLICY.test(pathname) || OWN_POLICY.test(location.pathname)))
    return how === 'push' ? location.assign(to) : location.replace(to);
  history[how === 'push' ? 'pushState' : 'replaceState'](null, '', to);
  if (isOtherPage) {
    forgetCalls();
    scrollTo(0, 0);
  }
  address.value = read();
}

/** Sets parameters of the address without leaving the page; an empty value removes one. */
export function setQuery(values: Record<string, string>): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  history.replaceState(null, '', location.pathname + (text && `?${text}`));
  address.value = read();
}

/** Links of this server that pages of the dashboard do not answer. */
const OTHERS = /^\/(v2|graphql|account|login|oauth|downloads)(\/|$|\?)/;

export function startRouter(): void {
  addEventListener('popstate', () => {
    forgetCalls();
    address.value = read();
  });
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = (event.target as Element).closest('a');
    if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
    if (OTHERS.test(link.pathname) || (link.hash && link.pathname === location.pathname)) return;
    event.preventDefault();
    navigate(link.pathname + link.search + link.hash);
  });
}

/**
 * The parameters of a path that has the form of a pattern, such as `/applications/:id`; null for another one. A pattern
 * that ends with `/*` has all paths below it, and itself; the parameter `rest` is what follows.
 */
export function matchPath(pattern: string, path: string): Record<string, string> | null {
  if (pattern.endsWith('/*')) return matchBelow(pattern.slice(0, -2), path);
  const [wanted = [], given = []] = [pattern, path].map((text) => text.replace(/\/$/, '').split('/'));
  if (wanted.length !== given.length) return null;
  const found: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index] as string;
    if (part.startsWith(':')) found[part.slice(1)] = decodePart(value);
    else if (part !== value) return null;
  }
  return found;
}

function matchBelow(pattern: string, path: string): Record<string, string> | null {
  const parts = path.replace(/\/$/, '').split('/');
  const count = pattern.split('/').length;
  const found = matchPath(pattern, parts.slice(0, count).join('/'));
  return found && { ...found, rest: parts.slice(count).join('/') };
}

/** A part of a path; as it is where it cannot be decoded: the API says that it is no id. */
export function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
