// The OAuth callback for Git providers. The grant is used only after the person has confirmed the project: a link from
// an attacker must not connect an account without confirmation.
import type { Request, RequestHandler, Response } from 'express';
import { Problem } from '../../core/errors';
import { GIT_PROVIDER_TITLES, GitProviderError } from '../../core/protocols/git_provider';
import { finishGrant } from '../../models/integrations/git_integration/finish_grant';
import { findGrant, type PendingGrant } from '../../models/integrations/git_integration/oauth';
import type { Platform } from '../platform/platform';
import { sendFormPage, textOf } from '../plain_page';

const OVER = 'The link is not valid any more. Ask for a new one by verifying the Git integration.';

/** GET shows the confirmation page, POST uses the code. */
export function gitOauthCallback(platform: Platform): RequestHandler {
  return async (request, response) => {
    try {
      await answer(platform, request, response);
    } catch (error) {
      platform.log.error({ err: error, request_id: response.getHeader('X-Request-Id') }, 'request failed');
      sendFormPage(response, 500, 'Something went wrong', 'The request failed on our side. Try again.');
    }
  };
}

async function answer(platform: Platform, request: Request, response: Response): Promise<void> {
  const { database, secrets } = platform;
  const [state, code] = [textOf(request.query.state), textOf(request.query.code)];
  const grant = await findGrant(database, secrets, state);
  if (!grant) return sendFormPage(response, 400, 'Link expired', OVER);
  const title = GIT_PROVIDER_TITLES[grant.provider];
  if (code === '') {
    const said = textOf(request.query.error_description) || textOf(request.query.error) || 'no reason';
    return sendFormPage(response, 400, 'Access was not granted', `${title} answered: ${said.slice(0, 200)}.`);
  }
  if (request.method === 'POST') return use(platform, grant, code, response);
  const what = `Connect your account of ${title} to “${grant.name}” in the project “${grant.project_name}”?`;
  const remark = 'Everybody in this project will be able to use it. Continue only if you began this yourself.';
  sendFormPage(response, 200, what, remark, '<form method="post"><button>Connect</button></form>');
}

async function use(platform: Platform, grant: PendingGrant, code: string, response: Response): Promise<void> {
  try {
    const { database: sql, secrets, config, probes } = platform;
    const { login } = await finishGrant({ sql, secrets, config, probes }, grant, code);
    sendFormPage(response, 200, 'Connected', `The integration uses the account ${login} now. You can close this page.`);
  } catch (error) {
    if (!(error instanceof GitProviderError || error instanceof Problem)) throw error;
    const again = 'Ask for a new link by verifying the Git integration.';
    sendFormPage(response, 502, 'The provider refused', `${error.message} ${again}`);
  }
}
