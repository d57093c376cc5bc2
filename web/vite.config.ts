import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';

const data = fileURLToPath(new URL('../data/', import.meta.url));

/** Names of the catalogue's folders, so that forms have their choices before the engine is there. */
function catalogueNames(): Plugin {
  const id = 'virtual:names';
  const folders = {
    models: 'models', devices: 'hardware/devices', clusters: 'clusters', engines: 'engines',
    strategies: 'strategies', schedules: 'schedules', optimizers: 'optimizers', precisions: 'precisions',
    attention: 'attention',
  };
  return {
    name: 'catalogue-names',
    resolveId: (asked) => (asked === id ? `\0${id}` : undefined),
    load(asked) {
      if (asked !== `\0${id}`) return undefined;
      const names = Object.entries(folders).map(([kind, folder]) => [
        kind,
        readdirSync(data + folder, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile() && entry.name.endsWith('.json'))
          .map((entry) => entry.name.slice(0, -'.json'.length))
          .sort(),
      ]);
      return `export default ${JSON.stringify(Object.fromEntries(names))};`;
    },
  };
}

/** One file that opens from a disk: script and style inside of the page, and nothing else may run. */
function onePage(): Plugin {
  return {
    name: 'one-page',
    enforce: 'post',
    generateBundle(_, bundle) {
      const page = bundle['index.html'];
      if (page?.type !== 'asset') throw new Error('there is no index.html');
      let html = String(page.source);
      let code = '';
      for (const [name, file] of Object.entries(bundle)) {
        if (file.type === 'chunk') code += file.code;
        if (file.type === 'asset' && name.endsWith('.css')) {
          html = html.replace(/<link rel="stylesheet"[^>]*>/, () => `<style>${String(file.source)}</style>`);
        }
        if (name !== 'index.html') delete bundle[name];
      }
      code = code.replaceAll('</script', '<\\/script');
      const hash = createHash('sha256').update(code).digest('base64');
      const policy = [
        "default-src 'none'",
        `script-src 'sha256-${hash}' 'self' 'wasm-unsafe-eval' blob:`,
        "worker-src 'self' blob:",
        "style-src 'unsafe-inline'",
        'img-src data: blob:',
        "connect-src 'self' blob:",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
      ].join('; ');
      html = html
        .replace(/<script type="module"[^>]*><\/script>/, '')
        .replace('<meta charset="utf-8" />', `$&\n    <meta http-equiv="Content-Security-Policy" content="${policy}" />`)
        .replace('</body>', () => `<script>${code}</script>\n  </body>`);
      page.source = html;
    },
  };
}

export default defineConfig({
  base: './',
  plugins: [catalogueNames(), onePage()],
  build: {
    outDir: 'dist',
    emptyOutDir: false, // the engine stays beside the page
    target: 'es2022',
    modulePreload: false,
    cssCodeSplit: false,
    assetsInlineLimit: 1_000_000,
    rollupOptions: { output: { format: 'iife', codeSplitting: false } },
  },
  worker: { format: 'iife' },
});
