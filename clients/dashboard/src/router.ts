// Pages by path: a signal with the address, and links that change it.
import { signal } from '@preact/signals';
import { forgetCalls } from './api/calls';
import { guardWindow, hasUnsaved, haveLeft, leaveBy } from './parts/unsaved';

export interface Address {
  path: string;
  query: URLSearchParams;
}

const read = (): Address => ({ path: location.pathname, query: new URLSearchParams(location.search) });

export const address = signal(read());

/** Where the page stands in the history of the window, so that "back" can be taken back. */
let position = 0;

/** Pages whose documents have another policy than all others (server/http/dashboard.ts). */
const OWN_POLICY = /^\/applications\/[^/]+\/runs\/[^/]+\/terminal\/?$/;

/** Shows the page of a path of this server. */
export function navigate(to: string, how: 'push' | 'replace' = 'push'): void {
  const { pathname } = new URL(to, location.href);
  const isOtherPage = pathname !== location.pathname;
  if (isOtherPage && (OWN_POLICY.test(pathname) || OWN_POLICY.test(location.pathname)))
    return how === 'push' ? location.assign(to) : location.replace(to);
  if (how === 'push') position += 1;
  history[how === 'push' ? 'pushState' : 'replaceState']({ position }, '', to);
  haveLeft();
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
  history.replaceState({ position }, '', location.pathname + (text && `?${text}`));
  address.value = read();
}

/** Links of this server that pages of the dashboard do not answer. */
const OTHERS = /^\/(v2|graphql|account|login|oauth|downloads)(\/|$|\?)/;

export function startRouter(): void {
  position = placeOf(history.state) ?? 0;
  history.replaceState({ position }, '');
  guardWindow();
  addEventListener('popstate', goneBack);
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = (event.target as Element).closest('a');
    if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return;
    if (OTHERS.test(link.pathname) || (link.hash && link.pathname === location.pathname)) return;
    event.preventDefault();
    const go = (): void => navigate(link.pathname + link.search + link.hash);
    // A link that says "Cancel" has said it.
    if (isHere(link.pathname + link.search) || 'discard' in link.dataset) go();
    else leaveBy(go);
  });
}

let isReturning = false;

/** The browser has gone back or forth already: what is not saved is returned to, and then asked about. */
function goneBack({ state }: PopStateEvent): void {
  if (isReturning) return void (isReturning = false);
  const known = placeOf(state);
  const next = known ?? position + 1;
  // An entry that is not of this router, such as a link to a part of the page.
  if (known === undefined) history.replaceState({ position: next }, '');
  const by = next - position;
  const isSame = isHere(location.pathname + location.search);
  if (by && !isSame && hasUnsaved()) {
    isReturning = true;
    history.go(-by);
    return leaveBy(() => history.go(by));
  }
  position = next;
  if (isSame) return;
  haveLeft();
  forgetCalls();
  address.value = read();
}

/** Whether a path with its query is what is shown. */
function isHere(place: string): boolean {
  const { path, query } = address.peek();
  const search = query.toString();
  return place === path + (search && `?${search}`);
}

function placeOf(state: unknown): number | undefined {
  const { position: found } = (state ?? {}) as { position?: unknown };
  return typeof found === 'number' ? found : undefined;
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
