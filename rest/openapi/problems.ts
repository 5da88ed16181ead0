// Problem documents (RFC 9457): a schema for each code with the members that it brings, and one of all members.
import { errors, type ErrorCode } from '../../core/errors';
import type { DocumentBuilder } from './builder';
import type { Ref, Response, Schema } from './document';
import { commonHeaders } from './headers';
import { problemExamples } from './problem_examples';
import { problemMembers } from './problem_members';
import { textSchema } from './problem_parts';

const REQUEST_ID = '^req_[0-9a-hjkmnp-tv-z]{26}$';

/** The response of one status with the codes it can carry: a component where all operations share it by name. */
export function problemResponse(builder: DocumentBuilder, status: number, codes: ErrorCode[]): Response | Ref {
  const [first] = codes;
  const name = codes.map(pascal).join('Or');
  if (codes.length > 3 || !first) return makeResponse(builder, status, codes);
  return builder.use('responses', name, () => makeResponse(builder, status, codes));
}

function makeResponse(builder: DocumentBuilder, status: number, codes: ErrorCode[]): Response {
  return {
    description:
      codes.length === 1
        ? describeError(codes[0] as ErrorCode)
        : codes.map((code) => `* \`${code}\`: ${errors[code].title}`).join('\n'),
    headers: commonHeaders(builder, status),
    content: {
      'application/problem+json': { schema: oneOfProblems(builder, codes), examples: problemExamples(builder, codes) },
    },
  };
}

/** `code` tells them apart, so that generators make a union of it. */
function oneOfProblems(builder: DocumentBuilder, codes: ErrorCode[]): Schema {
  const refs = codes.map((code) => problemRef(builder, code));
  if (refs.length === 1) return refs[0] as Schema;
  const mapping = Object.fromEntries(codes.map((code, index) => [code, refs[index]?.$ref as string]));
  return { oneOf: refs, discriminator: { propertyName: 'code', mapping } };
}

function describeError(code: ErrorCode): string {
  return `${errors[code].meaning} ${errors[code].remedy}`;
}

/** What every document has. */
function standardMembers(builder: DocumentBuilder): Record<string, Schema> {
  return {
    type: { type: 'string', format: 'uri', description: 'URL that describes the code.' },
    title: textSchema('Title of the error.'),
    status: { type: 'integer', description: 'HTTP status.' },
    detail: textSchema('Explanation of this occurrence of the error.'),
    instance: textSchema('Path of the request.'),
    code: codeRef(builder),
    request_id: {
      type: 'string',
      pattern: REQUEST_ID,
      description: 'Id of the request, as in the header X-Request-Id. Include it when you contact the operator.',
    },
    retryable: { type: 'boolean', description: 'Whether the same request may succeed later without a change.' },
  };
}

function codeRef(builder: DocumentBuilder): Schema {
  return builder.use('schemas', 'ErrorCode', () => ({
    type: 'string',
    description: 'Stable error code. /v2/errors lists all codes; more may be added.',
    enum: Object.keys(errors),
  }));
}

/** The schema of one code. */
function problemRef(builder: DocumentBuilder, code: ErrorCode): Schema {
  return builder.use('schemas', `${pascal(code)}Problem`, () => {
    const members = Object.entries(problemMembers(builder)).filter(([, { codes }]) => codes.includes(code));
    const standard = standardMembers(builder);
    return {
      type: 'object',
      description: describeError(code),
      properties: {
        ...standard,
        status: { type: 'integer', enum: [errors[code].status] },
        code: { type: 'string', enum: [code] },
        ...Object.fromEntries(members.map(([name, { schema }]) => [name, schema])),
      },
      required: [...Object.keys(standard), ...members.filter(([, { always }]) => always).map(([name]) => name)],
    };
  });
}

/** A document of any code, for clients that read all of them alike. */
export function anyProblemRef(builder: DocumentBuilder): Schema {
  return builder.use('schemas', 'Problem', () => {
    const standard = standardMembers(builder);
    const members = Object.entries(problemMembers(builder)).map(([name, { codes, schema }]) => {
      const brought = codes.map((code) => `\`${code}\``).join(', ');
      return [name, { ...schema, description: `${brought}: ${schema.description}` }] as const;
    });
    return {
      type: 'object',
      description:
        'A problem document (RFC 9457). `code` is stable and determines which additional members are present.',
      properties: { ...standard, ...Object.fromEntries(members) },
      required: Object.keys(standard),
    };
  });
}

const pascal = (code: string): string =>
  code
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
