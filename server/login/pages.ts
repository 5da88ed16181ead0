// Pages for logging in: plain HTML, usable without scripts.
import { LOGIN_PATHS } from '../../core/mail/account_paths';
import type { Config } from '../../core/config';
import { escapeHtml } from '../../core/protocols/html';

type Methods = Pick<Config, 'loginPassword' | 'loginProviders'>;

interface LoginForm {
  /** Of the last attempt. */
  email: string;
  failure: string;
  /** Whether a two-factor code is needed. */
  asksCode: boolean;
  /** Where the forms are sent to; empty: to the page that they are on. */
  action: string;
  /** Path of our own where the person goes on. */
  returnTo: string;
}

/** All ways to log in: the password, unless it is switched off, and a button for each provider. */
export function loginForms(methods: Methods, { email, failure, asksCode, action, returnTo }: LoginForm): string {
  const fields = [
    hidden('return_to', returnTo),
    `<label>E-mail address<input name="email" type="email" autocomplete="username" required
      value="${escapeHtml(email)}"></label>`,
    '<label>Password<input name="password" type="password" autocomplete="current-password" required></label>',
    asksCode ? CODE_FIELD : '',
    '<button name="action" value="login">Log in</button>',
  ].join('');
  const target = action ? ` action="${escapeHtml(action)}"` : '';
  const forgotten = '<p><a href="/account/reset-password">Forgotten password</a></p>';
  const password = methods.loginPassword === 'on' ? `<form method="post"${target}>${fields}</form>${forgotten}` : '';
  return `${problemText(failure)}${password}${providerButtons(methods, returnTo)}`;
}

/** A button for each provider. */
export function providerButtons({ loginProviders }: Pick<Methods, 'loginProviders'>, returnTo: string): string {
  return loginProviders
    .map(({ name, title }) => providerForm(name, hidden('return_to', returnTo), `Continue with ${title}`))
    .join('');
}

/** A form that begins a login at a provider. @param fields HTML */
function providerForm(name: string, fields: string, button: string): string {
  const action = escapeHtml(LOGIN_PATHS.with + name);
  return `<form method="post" action="${action}"><p>${fields}<button>${escapeHtml(button)}</button></p></form>`;
}

const CODE_FIELD =
  '<label>Code of your authenticator, or a recovery code<input name="code" autocomplete="one-time-code"></label>';

export function codeForm(attempt: string, failure: string): string {
  const button = '<button>Continue</button>';
  return `${problemText(failure)}<form method="post">${hidden('attempt', attempt)}${CODE_FIELD}${button}</form>`;
}

interface LinkedLogins {
  linked: readonly { id: string; provider: string; title: string; email: string | null }[];
  /** Whose password linking needs, for password managers; null where it needs none. */
  passwordOf: string | null;
  failure: string;
}

/** The logins of a person, each to be unlinked, and the providers that can be linked. */
export function linkedLogins({ loginProviders }: Methods, { linked, passwordOf, failure }: LinkedLogins): string {
  const rows = linked.map(({ id, title, email }) => {
    const what = escapeHtml(email ? `${title}, ${email}` : title);
    const button = `<button name="action" value="unlink" aria-label="Unlink ${what}">Unlink</button>`;
    return `<li>${what} <form method="post">${hidden('id', id)}${button}</form></li>`;
  });
  const open = loginProviders.filter(({ name }) => !linked.some(({ provider }) => provider === name));
  const email = escapeHtml(passwordOf ?? '');
  const password =
    `<input name="username" autocomplete="username" aria-label="E-mail" value="${email}" hidden>` +
    '<label>Your password<input name="password" type="password" autocomplete="current-password"></label>';
  const fields = hidden('link', 'yes') + hidden('return_to', LOGIN_PATHS.linked) + (passwordOf ? password : '');
  const forms = open.map(({ name, title }) => providerForm(name, fields, `Link ${title}`));
  const list = rows.length ? `<ul>${rows.join('')}</ul>` : '<p>No login is linked.</p>';
  return `${problemText(failure)}${list}${forms.join('')}`;
}

function problemText(failure: string): string {
  return failure ? `<p class="problem" role="alert">${escapeHtml(failure)}</p>` : '';
}

function hidden(name: string, value: string): string {
  return `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`;
}
