// What the generated pages share.

/** The beginning of a page, which says how it is made. */
export function opening(title: string, description: string, script: string): string {
  return `---
title: ${title}
description: "${description}"
outline: 2
---

<!-- Made by npm run ${script}: change the sources instead. -->

# ${title}
`;
}

/** A table, without its empty columns. */
export function tableOf(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const kept = titles.map((_, place) => rows.some((row) => row[place] !== ''));
  const line = (cells: readonly string[]) =>
    `| ${cells
      .filter((_, place) => kept[place])
      .map((cell) => cell.replaceAll('|', '\\|'))
      .join(' | ')} |`;
  return [line(titles), line(titles.map(() => '---')), ...rows.map(line)].join('\n');
}

/** A sentence from a note: with a capital letter, and a period. */
export function sentence(text: string): string {
  const whole = `${text[0]?.toUpperCase()}${text.slice(1)}`;
  return /[.:]$/.test(whole) ? whole : `${whole}.`;
}

/** In a text outside of code, what Vue and HTML would take for theirs. */
export function safe(text: string): string {
  return text
    .split(/(`[^`]*`)/)
    .map((part, place) => (place % 2 === 1 ? part : part.replaceAll('<', '&lt;')))
    .join('');
}

/** A block of code. */
export function block(language: string, text: string): string {
  return `\`\`\`${language}\n${text}\n\`\`\``;
}
