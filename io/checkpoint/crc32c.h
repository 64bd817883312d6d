/* crc32c.h - the checksum of checkpoints: CRC-32C (Castagnoli et al. 1993), as in iSCSI and ext4. */
#ifndef WEFT_IO_CRC32C_H
#define WEFT_IO_CRC32C_H
#include <stddef.h>
#include <stdint.h>

/* Of n bytes that follow those with checksum `before` (0: none). "123456789" gives E3069283. */
uint32_t weft__crc32c(uint32_t before, const void *bytes, size_t n);
#endif
