// Imports as a test asks for them.
import { stacksOf } from './stack_calls';
import type { Answer, TestService } from '../service';
import { parse } from 'yaml';

export interface Finding {
  path: string;
  line: number;
  what: string;
  reason: string;
  nearest: string | null;
}

export interface Imported {
  document: string;
  /** The document, as an object. */
  file: Record<string, Record<string, Record<string, unknown>>>;
  kind: string;
  missing: string[];
  found: Finding[];
  /** `services.web.ports.0 (7)` */
  places: string[];
}

export function callImport(service: TestService, files: Record<string, string>, more: object = {}): Promise<Answer> {
  const body = { files: Object.entries(files).map(([path, content]) => ({ path, content })), ...more };
  return service.call('POST', '/v2/stack/import', { body });
}

/** Imports files, and expects that a plan of the document refuses nothing. */
export async function importPlanned(
  service: TestService,
  files: Record<string, string>,
  more: object = {},
): Promise<Imported> {
  const { status, body, text } = await callImport(service, files, more);
  if (status !== 200) throw new Error(text);
  const { id, key } = await service.newProject();
  const plan = await stacksOf(service, id, { key, project: id }).plan(body.document);
  expect({ document: body.document, status: plan.status, refusals: plan.body.refusals ?? plan.body.errors }).toEqual({
    document: body.document,
    status: 200,
    refusals: [],
  });
  const found = body.not_taken_over as Finding[];
  return {
    ...{ document: body.document, file: parse(body.document), kind: body.kind, missing: body.missing_files, found },
    places: found.map(({ what, line }) => `${what} (${line})`),
  };
}
