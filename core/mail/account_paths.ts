// Pages for links in mails, on the port of the API.
export const ACCOUNT_PATHS = {
  resetPassword: '/account/reset-password',
  newPassword: '/account/new-password',
  confirmEmail: '/account/confirm-email',
  invitation: '/account/invitation',
} as const;

/** Login pages, for passwords and external providers. */
export const LOGIN_PATHS = {
  login: '/login',
  /** The name of the provider follows. */
  with: '/login/with/',
  code: '/login/code',
  linked: '/account/logins',
} as const;

/** Redirect URI path of a provider, which the operator registers there. */
export function loginCallbackPath(name: string): string {
  return `${LOGIN_PATHS.with}${name}/callback`;
}

const PATH_CHARACTERS_MAX = 500;
const NOWHERE = 'http://nowhere.invalid';

/** A path of this server as redirect target after a login; `/` for any other value. */
export function ownPath(text: string): string {
  if (text.length > PATH_CHARACTERS_MAX || !/^\/[\x21-\x7e]*$/.test(text) || !URL.canParse(text, NOWHERE)) return '/';
  const { origin, pathname, search } = new URL(text, NOWHERE);
  // `/.//example.com` is `//example.com` once its dots are taken out: another host.
  if (origin !== NOWHERE || pathname.startsWith('//') || pathname.startsWith(LOGIN_PATHS.login)) return '/';
  return pathname + search;
}
