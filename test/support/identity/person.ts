// A person at a browser without scripts: follows redirects, keeps cookies, fills in forms.
import { CookieJar } from 'tough-cookie';
import type { TestService } from '../service';
import { newUser, PASSWORD } from './browser';

export interface Page {
  url: string;
  status: number;
  headers: Headers;
  html: string;
  title: string;
}

export interface Person {
  id: string;
  email: string;
  open(url: string): Promise<Page>;
  /**
   * Sends the form of a page with what it is filled with by default, changed by `fields`; null takes a field out.
   * Follows redirects until a page comes, or one leads away from the service: then `url` is that address.
   */
  submit(page: Page, fields: Record<string, string | string[] | null>, headers?: Record<string, string>): Promise<Page>;
  cookies(): Promise<string>;
}

export async function newPerson(service: TestService, email: string, role?: 'owner' | 'viewer'): Promise<Person> {
  const { id } = await newUser(service, email, role);
  return { id, email, ...visitor(service) };
}

export function visitor(service: Pick<TestService, 'url'>): Pick<Person, 'open' | 'submit' | 'cookies'> {
  const jar = new CookieJar();
  const visit = async (url: string, init: RequestInit = {}): Promise<Page> => {
    const cookie = await jar.getCookieString(url);
    const headers = { accept: 'text/html', 'user-agent': 'test browser', ...(init.headers as object), cookie };
    const answer = await fetch(url, { ...init, headers, redirect: 'manual' });
    for (const line of answer.headers.getSetCookie()) await jar.setCookie(line, url);
    const location = answer.headers.get('location');
    const html = await answer.text();
    if (!location) return { url, status: answer.status, headers: answer.headers, html, title: titleOf(html) };
    const next = new URL(location, url);
    if (next.origin === new URL(service.url).origin) return visit(next.href);
    return { url: next.href, status: answer.status, headers: answer.headers, html: '', title: '' };
  };
  return {
    open: (url) => visit(url),
    cookies: () => jar.getCookieString(service.url),
    submit(page, fields, headers = {}) {
      const body = new URLSearchParams();
      for (const [name, value] of defaultsOf(page.html)) if (!(name in fields)) body.append(name, value);
      for (const [name, value] of Object.entries(fields))
        for (const one of [value ?? []].flat()) body.append(name, one);
      const origin = new URL(page.url).origin;
      return visit(page.url.split('?')[0] as string, { method: 'POST', body, headers: { origin, ...headers } });
    },
  };
}

/** Logs in on the page that asks for it, and answers the next one. */
export function logIn(person: Person, page: Page, password = PASSWORD): Promise<Page> {
  return person.submit(page, { email: person.email, password, action: 'login' });
}

function titleOf(html: string): string {
  return /<title>(.*?)<\/title>/.exec(html)?.[1] ?? '';
}

/** What a browser sends of the fields that the page fills in. */
function defaultsOf(html: string): [string, string][] {
  const inputs = [...html.matchAll(/<input\b([^>]*)>/g)].map(([, text = '']) => text);
  const attribute = (text: string, name: string): string | undefined => new RegExp(`${name}="([^"]*)"`).exec(text)?.[1];
  return inputs.flatMap((text) => {
    const name = attribute(text, 'name');
    const isOff = attribute(text, 'type') === 'checkbox' && !/\bchecked\b/.test(text);
    return name === undefined || isOff ? [] : [[name, attribute(text, 'value') ?? '']];
  });
}
