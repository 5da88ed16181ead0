// Ways through the pages that are made of the SDL, and the table that they are made of.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from '../runner/repository';
import { settled, type Page } from './chromium';

/** The part of the table that tests read. */
export interface Table {
  operations: Record<string, { ids: string[]; group: string; isMutation: boolean }>;
  pages: Record<
    string,
    {
      finds?: string;
      group: string;
      scope: string;
      read: string;
      isList: boolean;
      operations: string[];
      pages: string[];
    }
  >;
}

/** The table as the build of the dashboard makes it. */
export function resourceTable(): Table {
  const generator = path.join(ROOT, 'clients/dashboard/resource_table.mjs');
  const script = `import { readFileSync } from 'node:fs';
    import { resourceTable } from ${JSON.stringify(generator)};
    const sdl = readFileSync(${JSON.stringify(path.join(ROOT, 'test/golden/schema.graphql'))}, 'utf8');
    process.stdout.write(JSON.stringify(resourceTable(sdl)));`;
  const options = { encoding: 'utf8', maxBuffer: 16 << 20 } as const;
  return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '-e', script], options)) as Table;
}

/** Pages that "All resources" names: of a project, or of the account. */
export function rootPages({ pages }: Table, scope: 'project' | 'account'): string[] {
  return Object.keys(pages).filter((key) => pages[key]?.scope === scope && !key.includes('{}'));
}

/** Ids of all operations, of the specification and beyond it. */
export function operationIds(): string[] {
  return ['operations.tsv', 'extensions.tsv'].flatMap((name) => {
    const rows = readFileSync(path.join(ROOT, 'docs/contract', name), 'utf8')
      .trim()
      .split('\n')
      .slice(1);
    return rows.map((row) => row.split('\t')[1] as string);
  });
}

/** Forms of the page that is shown. */
export function formsOf(page: Page): {
  open(name: string): Promise<void>;
  send(name: string): Promise<void>;
  fill(label: string, text: string): Promise<void>;
  choose(label: string, value: string): Promise<unknown>;
  title(text: string): Promise<void>;
  remove(name: string, typed: string): Promise<void>;
} {
  const form = page.locator('form.generic-form');
  const title = (text: string): Promise<void> => page.locator('h1', { hasText: text }).waitFor();
  const send = (name: string): Promise<void> => form.getByRole('button', { name, exact: true }).click();
  const open = async (name: string): Promise<void> => {
    await settled(page);
    await page.locator('.page-head').getByRole('button', { name, exact: true }).click();
    await title(name);
    await form.waitFor();
  };
  return {
    open,
    send,
    title,
    fill: (label, text) => page.getByLabel(label, { exact: true }).fill(text),
    choose: (label, value) => page.getByLabel(label, { exact: true }).selectOption(value),
    async remove(name, typed) {
      await open(name);
      await form
        .getByText(/cannot be undone|can be taken back|can be restored/)
        .first()
        .waitFor();
      // What is lost for good is named first.
      await form.locator('button[type=submit][disabled]').waitFor();
      await page.getByLabel(/^Type /).fill(typed);
      await send(name);
    },
  };
}
