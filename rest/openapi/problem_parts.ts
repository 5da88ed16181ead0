// Objects that members of problem documents consist of.
import type { FieldErrorCode } from '../../core/errors';
import type { DocumentBuilder } from './builder';
import type { Schema } from './document';

// Its keys are checked against the type, so that a new code can't be forgotten here.
const fieldErrorCodes: Record<FieldErrorCode, string> = {
  required: 'The field is missing, or it is null and must not be.',
  unknown_field: 'The body has no field of this name.',
  immutable: 'The field cannot be changed.',
  invalid_type: 'The value has the wrong JSON type.',
  invalid_format: 'The value does not match the pattern or format.',
  too_short: 'The text is too short.',
  too_long: 'The text is too long.',
  too_small: 'The number is below the minimum.',
  too_large: 'The number is above the maximum.',
  too_few: 'The list has too few entries.',
  too_many: 'The list has too many entries.',
  not_in_enum: 'The value is not one of the allowed values.',
  duplicate: 'The list contains the value twice.',
  mutually_exclusive: 'Only one of several fields may be given.',
  depends_on: 'The field requires another field, or another value of it.',
};

/** The schema of a string. */
export const textSchema = (description: string): Schema => ({ type: 'string', description });
/** The schema of an integer. */
export const integerSchema = (description: string): Schema => ({ type: 'integer', description });

export function fieldErrorRef(builder: DocumentBuilder): Schema {
  return builder.use('schemas', 'FieldError', () => ({
    type: 'object',
    description: 'An error in a body.',
    properties: {
      field: {
        type: 'string',
        description: 'Dotted path of the field, or empty for the body itself.',
        examples: ['source.branch'],
      },
      code: fieldErrorCodeRef(builder),
      detail: textSchema('Explanation of the error.'),
    },
    required: ['field', 'code', 'detail'],
  }));
}

function fieldErrorCodeRef(builder: DocumentBuilder): Schema {
  return builder.use('schemas', 'FieldErrorCode', () => ({
    type: 'string',
    description: Object.entries(fieldErrorCodes)
      .map(([code, meaning]) => `* \`${code}\`: ${meaning}`)
      .join('\n'),
    enum: Object.keys(fieldErrorCodes),
  }));
}

export function dependentRef(builder: DocumentBuilder): Schema {
  return builder.use('schemas', 'ProblemDependent', () => ({
    type: 'object',
    description: 'A resource that depends on the resource.',
    properties: {
      type: textSchema('Kind of the resource, in lower case.'),
      id: textSchema('Id of the resource.'),
      name: { type: ['string', 'null'], description: 'Name of the resource, or null if it has none.' },
    },
    required: ['type', 'id'],
  }));
}

export function resourceCountRef(builder: DocumentBuilder): Schema {
  return builder.use('schemas', 'ProblemResourceCount', () => ({
    type: 'object',
    description: 'Number of resources of one kind.',
    properties: {
      resource: textSchema('Kind of resource, as in the usage of a project.'),
      count: integerSchema('Number of resources.'),
    },
    required: ['resource', 'count'],
  }));
}
