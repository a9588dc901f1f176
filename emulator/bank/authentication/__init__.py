"""Strong customer authentication, from the TPP's wish for it to the redirect that tells how it ended."""
