// What every page keeps to: no violation of axe at any width, light and dark, and nothing wider than the screen.
import { overflow, violations, visit, WIDTHS, type Page } from './chromium';

/** Opens a page and holds it to the rules. */
export async function keepsTheRules(page: Page, place: string): Promise<void> {
  await visit(page, place);
  await asItStands(page);
}

/** The rules for a page that is open. */
export async function asItStands(page: Page): Promise<void> {
  for (const [index, width] of WIDTHS.entries()) {
    await page.setViewportSize({ width, height: 800 });
    // Colours and widths have nothing to do with each other: both colours are seen, at each width one more page.
    for (const colorScheme of index === 0 ? (['light', 'dark'] as const) : (['light'] as const)) {
      await page.emulateMedia({ colorScheme });
      expect([width, colorScheme, await violations(page)]).toEqual([width, colorScheme, []]);
    }
    expect([width, await overflow(page)]).toEqual([width, 0]);
  }
}
