// Programs that register themselves (RFC 7591), where OAUTH_REGISTRATION is on.
import type { Request, Response } from 'express';
import { parseRegistration, RegistrationError, type Registration } from '../../core/accounts/client_registration';
import { Problem } from '../../core/errors';
import { limits } from '../../core/limits';
import { registerOauthClient } from '../../models/identity/oauth/client';
import { requestContext } from '../platform/context';
import type { Platform } from '../platform/platform';
import { readRawBody, refuseRequest } from '../http/raw_request';

/** Responds with the stored registration, which may be less than the program requested (section 3.2.1). */
export async function registerClient(platform: Platform, request: Request, response: Response): Promise<void> {
  const ctx = requestContext(platform, request, String(response.getHeader('X-Request-Id')));
  try {
    const registration = await readRegistration(request);
    const client = await registerOauthClient(ctx, registration);
    platform.log.info({ client: client.client_id, name: client.client_name }, 'a program has registered itself');
    const constant = { response_types: ['code'], token_endpoint_auth_method: 'none' };
    send(response, 201, { ...client, grant_types: registration.grant_types, ...constant, client_id_issued_at: now() });
  } catch (error) {
    if (error instanceof RegistrationError) return sendError(response, 400, error.code, error.message);
    if (!(error instanceof Problem) || error.status >= 500)
      return refuseRequest(platform, response, request.path, error);
    response.set(error.headers);
    const code = error.code === 'rate_limited' ? 'temporarily_unavailable' : 'invalid_client_metadata';
    sendError(response, error.status, code, error.detail);
  }
}

async function readRegistration(request: Request): Promise<Registration> {
  if (!/^application\/json\s*(?:;|$)/i.test(request.headers['content-type'] ?? ''))
    throw new RegistrationError('invalid_client_metadata', 'The request needs `Content-Type: application/json`.');
  const body = await readRawBody(request, limits.registrationBodyBytesMax);
  return parseRegistration(parseJson(body));
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw new RegistrationError('invalid_client_metadata', 'The body is not valid JSON.');
  }
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}

function sendError(response: Response, status: number, error: string, error_description: string): void {
  send(response, status, { error, error_description });
}

function send(response: Response, status: number, body: object): void {
  response.status(status).set({ 'Cache-Control': 'no-store', Pragma: 'no-cache' }).json(body);
}
