// Settings of the AI group: the offered models, and usage reports.
import { formats } from '../formats/formats';
import { path, text, type Row, type Typed } from '../setting_types';

const TOKEN_CHARACTERS_MIN = 32;

function token<const R extends Row>(row: R): Typed<string, R> {
  const parse = (given: string): string | null =>
    given.length >= TOKEN_CHARACTERS_MIN && formats.single_line(given) ? given : null;
  return { ...text(row), type: `text of at least ${TOKEN_CHARACTERS_MIN} characters`, parse };
}

export const aiSettings = {
  AI_MODELS_FILE: path({
    default: null,
    description:
      'JSON file with changes to the catalog of AI models: {"only_listed": false, "models": [{"id": "…"}]}, see ' +
      'docs/AI.md. Read at the start.',
  }),
  AI_USAGE_TOKEN: token({
    default: null,
    secret: true,
    description:
      'Token with which an inference gateway reports usage on the admin port. Not set: usage is not accepted.',
  }),
};
