// docs/dashboard-pages.md: a picture of every page, by its route.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from '../runner/repository';
import type { Page } from './chromium';

const FOLDER = path.join(ROOT, 'docs/images/pages');
const DOCUMENT = path.join(ROOT, 'docs/dashboard-pages.md');
const SIZE = { width: 960, height: 600 };

/** Where SCREENSHOTS is set, writes a picture of the page as it stands, in the light colours. */
export async function takePicture(page: Page, route: string): Promise<void> {
  if (!process.env.SCREENSHOTS) return;
  const before = page.viewportSize();
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(SIZE);
  await page.screenshot({ path: path.join(FOLDER, pictureOf(route)) });
  if (before) await page.setViewportSize(before);
}

/** Writes the document where SCREENSHOTS is set. @returns what it lacks, or has too much of */
export function faultsOfPictures(routes: readonly string[]): string[] {
  const text = documentOf(routes);
  if (process.env.SCREENSHOTS) writeFileSync(DOCUMENT, text);
  const [wanted, found] = [
    routes.map(pictureOf),
    readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.png')),
  ];
  return [
    ...wanted.filter((name) => !found.includes(name)).map((name) => `${name} is missing`),
    ...found.filter((name) => !wanted.includes(name)).map((name) => `${name} is of no route`),
    ...(readFileSync(DOCUMENT, 'utf8') === text ? [] : [`${path.basename(DOCUMENT)} is not of these routes`]),
  ];
}

/** `/projects/:id/keys` is `projects/keys.png`. */
function pictureOf(route: string): string {
  const words = route.split('/').filter((part) => part && part !== '*' && part !== ':id');
  const [first = 'home', ...others] = words.map((part) => part.replace(':', ''));
  return `${[first, others.join('-')].filter(Boolean).join('/')}.png`;
}

function documentOf(routes: readonly string[]): string {
  const pictures = routes.map((route) => `\`${route}\`\n\n![The page ${route}](images/pages/${pictureOf(route)})\n`);
  return [
    '# Pages of the dashboard\n',
    'Every page by its route, with made-up data. `npm run screenshots` makes the pictures again.\n',
    'What the pages are for: [DASHBOARD.md](DASHBOARD.md).\n',
    ...pictures,
  ].join('\n');
}
