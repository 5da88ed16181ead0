// Settings of Git integrations.
import { gitOauthClients } from '../setting_types';

export const gitSettings = {
  GIT_OAUTH_CLIENTS: gitOauthClients({
    default: '',
    secret: true,
    description:
      'OAuth clients of this installation at Git providers, separated by commas: github=ID:SECRET, or for a ' +
      'self-hosted one gitlab@https://git.example.com=ID:SECRET. Not listed: access by token only.',
  }),
};
