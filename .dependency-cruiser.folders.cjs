/** Circles between folders. Apart from the other rules, since a test may import what its folder may not. */
const { options } = require('./.dependency-cruiser.cjs');

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-cycle-of-folders',
      comment:
        'Two folders that need each other are one. What a folder holds includes its sub-folders; types count.',
      severity: 'error',
      scope: 'folder',
      from: {},
      to: { circular: true },
    },
  ],
  options: { ...options, exclude: { path: [options.exclude.path, '\\.test\\.tsx?$'] } },
};
