// Settings of logins of people and programs.
import { flag, oneOf } from '../setting_types';

export const loginSettings = {
  LOGIN_PASSWORD: oneOf(['on', 'off'], {
    default: 'on',
    description: 'Whether people can log in with a password. off requires a login provider: LOGIN_<NAME>_ISSUER.',
  }),
  OAUTH_REGISTRATION: flag({
    default: '0',
    description:
      'Whether programs register themselves with the authorisation server (RFC 7591), as clients of MCP do. ' +
      'Anybody can then register a program under any name; the consent page warns of this.',
  }),
};

/** Settings of one provider: <NAME> is any name in upper case, as in LOGIN_GOOGLE_ISSUER. */
export const loginProviderRows = {
  'LOGIN_<NAME>_ISSUER': {
    type: 'https URL',
    description:
      'Login provider: its issuer (OpenID Connect), or https://github.com. The redirect URI is ' +
      'BASE_URL/login/with/<name>/callback, with the name in lower case.',
  },
  'LOGIN_<NAME>_CLIENT_ID': { type: 'text', description: 'Client id of this installation at the provider.' },
  'LOGIN_<NAME>_CLIENT_SECRET': { type: 'text', description: 'Client secret of this installation at the provider.' },
  'LOGIN_<NAME>_TITLE': { type: 'text', description: 'Name of the provider on the login button. Default: <NAME>.' },
  'LOGIN_<NAME>_TYPE': {
    type: 'oidc | github',
    description: 'github for GitHub and GitHub Enterprise Server. Default: github for https://github.com, else oidc.',
  },
} as const;
