// Settings of logins of people and programs.
import { flag, oneOf } from '../setting_types';

export const loginSettings = {
  LOGIN_PASSWORD: oneOf(['on', 'off'], {
    default: 'on',
    description: 'Whether people log in with a password. off needs another provider: LOGIN_<NAME>_ISSUER.',
  }),
  OAUTH_REGISTRATION: flag({
    default: '0',
    description:
      'Whether programs register themselves with the authorisation server (RFC 7591), as clients of MCP do. Anybody ' +
      'can then name a program as they like; the page that asks the person says so.',
  }),
};

/** Settings of one provider: <NAME> is any name in upper case, as in LOGIN_GOOGLE_ISSUER. */
export const loginProviderRows = {
  'LOGIN_<NAME>_ISSUER': {
    type: 'https URL',
    description:
      'Another provider that people log in at: its issuer (OpenID Connect), or https://github.com. The provider sends ' +
      'people back to BASE_URL/login/with/<name>/callback, the name in lower case.',
  },
  'LOGIN_<NAME>_CLIENT_ID': { type: 'text', description: 'Id of this installation at the provider.' },
  'LOGIN_<NAME>_CLIENT_SECRET': { type: 'text', description: 'Its secret.' },
  'LOGIN_<NAME>_TITLE': { type: 'text', description: 'What the button calls the provider. Default: the name.' },
  'LOGIN_<NAME>_TYPE': {
    type: 'oidc | github',
    description: 'github for GitHub and GitHub Enterprise Server. Default: github for https://github.com, else oidc.',
  },
} as const;
